--- Dials out to a gateway: the command `gateway provide` connects its standard streams to the WebSocket of providers.
---
--- The protocol is that of `docs/providers.md`; each line is one message. The command has TLS, which libuv's TCP has not.
local M = {}

-- LuaJIT of Debian 12 now and then compiles `pairs` wrongly: the loop ends early.
if jit then
  jit.off(true, true)
end

local mcp = require("mcp_gateway")
local calls = require("mcp_gateway.calls")
local editor = require("mcp_gateway.editor")
local json = require("mcp_gateway.json")

local OWNER = "provider"
local SHORTEST_MS, LONGEST_MS = 500, 30000
--- Exit codes of the command after which it is not started again: done, refused, wrong usage, wrong key, conflict.
local FINAL = { [0] = true, [1] = true, [2] = true, [4] = true, [6] = true }
local JSON = "application/json"

--- What was asked for: options, job and resume token; results that were not sent; watched resources by name.
local state = { unsent = {}, watched = {} }

--- What `:McpGateway status` shows of the connection.
M.status = "not started"

local function send(text)
  if state.job and #text <= json.LIMIT then
    vim.fn.chansend(state.job, text .. "\n")
    return true
  end
  return false
end

local function request(id, method, params)
  send(('{"jsonrpc":"2.0","id":%d,"method":%s,"params":%s}'):format(id, json.encode(method), params))
end

--- Responds to a request; a result that is too large is an error.
local function respond(id, result)
  local text = ('{"jsonrpc":"2.0","id":%s,"result":%s}'):format(json.encode(id), result)
  if #text > json.LIMIT then
    result = json.encode(mcp.error("EXECUTION_ERROR", ("the result has more than %d bytes"):format(json.LIMIT - 1024)))
    text = ('{"jsonrpc":"2.0","id":%s,"result":%s}'):format(json.encode(id), result)
  end
  send(text)
end

local function refuse(id, code, message)
  local fault = json.encode({ code = code, message = json.clean(message) })
  send(('{"jsonrpc":"2.0","id":%s,"error":%s}'):format(json.encode(id), fault))
end

local function uri_of(name)
  return ("nvim://%s/%s"):format(state.options.source, name)
end

--- The name of a resource of this editor, such as `buffer/3`, or nil.
local function name_of(uri)
  local begin = uri_of("")
  local name = type(uri) == "string" and vim.startswith(uri, begin) and uri:sub(#begin + 1)
  local is_known = name == "buffers" or name == "diagnostics" or name == "selection"
  return (is_known or name and name:match("^buffer/%d+$")) and mcp.shares_resources() and name or nil
end

local function resources()
  if not mcp.shares_resources() then
    return "[]", "[]"
  end
  local listed = {}
  for _, name in ipairs({ "buffers", "diagnostics", "selection" }) do
    listed[#listed + 1] = { uri = uri_of(name), name = name, mimeType = JSON }
  end
  local template = { uriTemplate = uri_of("buffer/{number}"), name = "buffer" }
  return json.encode(listed), json.encode({ template })
end

local function register()
  local tools = calls.definitions()
  local listed, templates = resources()
  local form = '{"tools":%s,"resources":%s,"resourceTemplates":%s}'
  request(2, "provider/register", form:format(tools, listed, templates))
end

local function read(id, uri)
  local name = name_of(uri)
  if not name then
    return refuse(id, -32002, "there is no such resource")
  end
  local number = tonumber(name:match("^buffer/(%d+)$"))
  local ok, bytes = pcall(editor.read, number and "buffer" or name, number)
  if not ok then
    return refuse(id, bytes == "not found" and -32002 or -32603, bytes)
  elseif json.invalid_at(bytes) then
    return refuse(id, -32603, "the buffer is not UTF-8")
  end
  respond(id, json.encode({ contents = { { uri = uri, mimeType = number and "text/plain" or JSON, text = bytes } } }))
end

local function watch(id, uri, wanted)
  local name = name_of(uri)
  if not name then
    return refuse(id, -32002, "there is no such resource")
  end
  state.watched[name] = wanted or nil
  editor.watch(OWNER, json.sorted_keys(state.watched), function(changed)
    local params = json.encode({ uri = uri_of(changed) })
    return send(('{"jsonrpc":"2.0","method":"notifications/resources/updated","params":%s}'):format(params))
  end)
  respond(id, "{}")
end

local METHODS = {
  ping = function(id)
    respond(id, "{}")
  end,
  ["tools/call"] = function(id, params)
    calls.run(OWNER, id, params.name, params.arguments or vim.empty_dict(), function(result)
      if state.is_attached then
        respond(id, result)
      else
        state.unsent[id] = result
      end
    end)
  end,
  ["resources/read"] = function(id, params)
    read(id, params.uri)
  end,
  ["resources/subscribe"] = function(id, params)
    watch(id, params.uri, true)
  end,
  ["resources/unsubscribe"] = function(id, params)
    watch(id, params.uri, false)
  end,
}

--- Begins, or continues with the calls that the gateway still waits for.
local function greeted(result)
  state.is_attached, state.resume, state.pause = true, result.resume, SHORTEST_MS
  M.status = ("attached as %s"):format(state.options.source)
  local waited = {}
  for _, call in ipairs(result.resumed and result.calls or {}) do
    waited[call] = true
  end
  for _, call in ipairs(calls.of(OWNER)) do
    if not waited[call] then
      calls.cancel(OWNER, call)
    end
  end
  for call, text in pairs(state.unsent) do
    if waited[call] then
      respond(call, text)
    end
  end
  state.unsent = {}
  if not result.resumed or state.is_changed then
    register()
  end
  state.is_changed = false
end

local function receive(line)
  local ok, message = pcall(json.decode, line)
  if not ok or type(message) ~= "table" then
    return
  end
  local params = type(message.params) == "table" and message.params or {}
  if message.method == "notifications/cancelled" then
    calls.cancel(OWNER, tostring(params.requestId))
  elseif message.method and message.id ~= nil then
    local run = METHODS[message.method]
    if run then
      run(message.id, params)
    else
      refuse(message.id, -32601, "there is no such method")
    end
  elseif message.id == 1 and type(message.result) == "table" then
    greeted(message.result)
  elseif message.id == 2 and type(message.result) == "table" then
    for _, notice in ipairs(message.result.notices or {}) do
      vim.notify(("mcp_gateway: %s: %s"):format(notice.name, notice.reason), vim.log.levels.ERROR)
    end
  elseif message.error then
    vim.notify("mcp_gateway: " .. tostring(message.error.message), vim.log.levels.ERROR)
  end
end

local function hello()
  local held = calls.of(OWNER)
  for call in pairs(state.unsent) do
    held[#held + 1] = call
  end
  local params = { version = 1, source = state.options.source, title = "Neovim", subscriptions = true }
  params.resume, params.calls = state.resume, held
  request(1, "provider/hello", json.encode(params))
end

local connect

local function ended(code, shown)
  state.job, state.is_attached = nil, false
  M.status = ("not attached: %s"):format(vim.trim(shown))
  if not state.options then
    return
  elseif FINAL[code] then
    vim.notify(("mcp_gateway: %s"):format(M.status), vim.log.levels.ERROR)
    return
  end
  local pause = state.pause or SHORTEST_MS
  state.pause = math.min(pause * 2, LONGEST_MS)
  vim.defer_fn(connect, pause / 2 + math.random(pause))
end

local function read_key(path)
  local file, fault = io.open(vim.fn.expand(path), "r")
  if not file then
    return nil, fault
  end
  local key = vim.trim(file:read("*a"))
  file:close()
  return key
end

function connect()
  local options = state.options
  if not options or state.job then
    return
  end
  local key, fault = read_key(options.key_file)
  if not key then
    vim.notify("mcp_gateway: " .. fault, vim.log.levels.ERROR)
    return
  end
  local command = vim.list_extend(vim.list_slice(options.command), { "provide", "--url", options.url })
  local rest, shown = "", {}
  local ok, job = pcall(vim.fn.jobstart, command, {
    env = { GATEWAY_KEY = key },
    on_stdout = function(_, lines)
      lines[1] = rest .. lines[1]
      rest = table.remove(lines)
      for _, line in ipairs(lines) do
        receive(line)
      end
    end,
    on_stderr = function(_, lines)
      shown = #shown < 20 and vim.list_extend(shown, lines) or shown
    end,
    on_exit = function(finished, code)
      if finished == state.job then
        ended(code, table.concat(shown, " "))
      end
    end,
  })
  if not ok or job <= 0 then
    vim.notify("mcp_gateway: cannot start " .. command[1], vim.log.levels.ERROR)
    return
  end
  state.job, M.status = job, "connecting"
  hello()
end

--- Ends the connection and its calls.
function M.stop()
  local job = state.job
  state = { unsent = {}, watched = {} }
  M.status = "not started"
  calls.cancel_all(OWNER)
  editor.watch(OWNER, {})
  if job then
    vim.fn.jobstop(job)
  end
end

--- Connects with these options, or registers the tools again if it is connected with them.
function M.start(options)
  options = vim.tbl_extend("keep", options, { command = { "gateway" } })
  if state.options and vim.deep_equal(state.options, options) then
    state.is_changed = not state.is_attached
    if state.is_attached then
      register()
    end
    return
  end
  M.stop()
  for _, name in ipairs({ "url", "key_file", "source" }) do
    if type(options[name]) ~= "string" then
      vim.notify(("mcp_gateway: provide.%s is missing"):format(name), vim.log.levels.ERROR)
      return
    end
  end
  state.options = options
  connect()
end

return M
