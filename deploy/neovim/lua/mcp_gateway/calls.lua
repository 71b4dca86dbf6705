--- Calls of tools for gateways: started with arguments in JSON, ended with a result in JSON, or cancelled.
local M = {}

-- LuaJIT of Debian 12 now and then compiles `pairs` wrongly: the loop ends early.
if jit then
  jit.off(true, true)
end

local mcp = require("mcp_gateway")
local json = require("mcp_gateway.json")

--- Calls that have not ended, by owner and call: true, or the function that cancels them.
local running = {}

local function key_of(owner, call)
  return owner .. ":" .. call
end

local function encode(result)
  local ok, encoded = pcall(json.encode, result)
  if ok then
    return encoded
  end
  local message = "Tool execution failed: the result cannot be sent: " .. encoded
  return json.encode(mcp.error("EXECUTION_ERROR", json.clean(message)))
end

--- The definitions of the declared tools in JSON, notices of those that cannot be sent, and the names of the others.
function M.definitions()
  local listed, names, notices = {}, {}, vim.list_slice(mcp.faults())
  local tools = mcp.get_registered_tools()
  for _, name in ipairs(json.sorted_keys(tools)) do
    local tool = tools[name]
    local ok, text = pcall(function()
      local form = '{"name":%s,"description":%s,"inputSchema":%s%s%s}'
      return form:format(
        json.encode(name),
        json.encode(tool.description),
        json.encode(tool.input_schema, "schema"),
        tool.title and ',"title":' .. json.encode(tool.title) or "",
        tool.annotations and ',"annotations":' .. json.encode(tool.annotations, "object") or ""
      )
    end)
    if ok then
      listed[#listed + 1], names[#names + 1] = text, name
    else
      notices[#notices + 1] = json.clean(("tool %s: %s"):format(name, text))
    end
  end
  return "[" .. table.concat(listed, ",") .. "]", notices, names
end

--- Runs a tool after the present event; `done` receives its result in JSON, unless the call is cancelled.
function M.run(owner, call, name, arguments, done)
  local key = key_of(owner, call)
  local function finish(result)
    if running[key] ~= nil then
      running[key] = nil
      done(encode(result))
    end
  end
  running[key] = true
  vim.schedule(function()
    if running[key] == nil then
      return
    end
    local cancel = mcp.start(name, arguments, function(result)
      if vim.in_fast_event() then
        vim.schedule(function()
          finish(result)
        end)
      else
        finish(result)
      end
    end)
    if running[key] ~= nil and cancel then
      running[key] = cancel
    end
  end)
end

--- Drops the result of a call, and cancels it if its handler can be cancelled.
function M.cancel(owner, call)
  local key = key_of(owner, call)
  local cancel = running[key]
  running[key] = nil
  if vim.is_callable(cancel) then
    pcall(cancel)
  end
end

--- The calls of an owner that have not ended.
function M.of(owner)
  local found, begin = {}, key_of(owner, "")
  for key in pairs(running) do
    if vim.startswith(key, begin) then
      found[#found + 1] = key:sub(#begin + 1)
    end
  end
  return found
end

--- Cancels every call of an owner.
function M.cancel_all(owner)
  for _, call in ipairs(M.of(owner)) do
    M.cancel(owner, call)
  end
end

return M
