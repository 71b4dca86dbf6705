--- Tools of this editor for MCP clients, declared in Lua. Help: `:help mcp_gateway`.
local M = {}

-- LuaJIT of Debian 12 now and then compiles `pairs` wrongly: the loop ends early, and an object comes out empty.
if jit then
  jit.off(true, true)
end

local ASYNC_WAIT_MS = 60 * 1000
--- Prefix of the client names of attached gateways (see |nvim_set_client_info()|).
M.CLIENT = "mcp-gateway:"

local tools, faults, options = {}, {}, {}

local function describe(fault)
  local ok, text = pcall(tostring, fault)
  return ok and text or "an error without text"
end

--- A result of one text block.
function M.text(text)
  return { content = { { type = "text", text = tostring(text) } } }
end

--- A result with a value as JSON; an object is its structured content as well.
function M.json(value)
  local json = require("mcp_gateway.json")
  local text = json.encode(value)
  local result = M.text(text)
  if text:sub(1, 1) == "{" then
    result.structuredContent = value
  end
  return result
end

--- A result for something that was done: a text as it is, any other value as JSON.
function M.success(value)
  return type(value) == "string" and M.text(value) or M.json(value)
end

--- A result that reports a fault of the tool; code, message and data are in `_meta.error`.
function M.error(code, message, data)
  local fault = { code = tostring(code), message = tostring(message), data = data }
  return { isError = true, content = { { type = "text", text = fault.message } }, _meta = { error = fault } }
end

local function failed(message)
  return M.error("EXECUTION_ERROR", "Tool execution failed: " .. message)
end

--- The fault of a handler's result, or nil.
local function fault_of(result)
  if type(result) ~= "table" or type(result.content) ~= "table" then
    return ("the handler returned a %s; return MCP.success, MCP.text, MCP.json or MCP.error"):format(type(result))
  end
  if result.isError ~= nil and type(result.isError) ~= "boolean" then
    return "isError of the result is not a boolean"
  end
  for key, block in pairs(result.content) do
    local is_block = type(key) == "number" and type(block) == "table" and type(block.type) == "string"
    if not is_block or block.type == "text" and type(block.text) ~= "string" then
      return "the content of the result is not a list of content blocks"
    end
  end
end

local function read_tool(name, declared)
  if type(name) ~= "string" then
    return "a tool has no name: custom_tools is a table of tools by name"
  elseif type(declared) ~= "table" then
    return ("tool %s: not a table"):format(name)
  elseif type(declared.description) ~= "string" or declared.description == "" then
    return ("tool %s: missing description"):format(name)
  elseif not vim.is_callable(declared.handler) then
    return ("tool %s: missing handler"):format(name)
  elseif declared.parameters ~= nil and type(declared.parameters) ~= "table" then
    return ("tool %s: parameters is not a JSON Schema"):format(name)
  elseif declared.parameters and declared.parameters.type ~= nil and declared.parameters.type ~= "object" then
    return ("tool %s: the type of parameters must be object"):format(name)
  end
  tools[name] = declared
end

local function refuse(fault)
  faults[#faults + 1] = fault
  vim.notify("mcp_gateway: " .. fault, vim.log.levels.ERROR)
end

--- Declares the tools of this editor, in place of those declared before; attached gateways discover again.
function M.setup(given)
  options = type(given) == "table" and given or {}
  tools, faults = {}, {}
  local declarations = options.custom_tools or {}
  if type(declarations) ~= "table" then
    refuse("custom_tools is not a table of tools by name")
    declarations = {}
  end
  for name, declared in pairs(declarations) do
    local fault = read_tool(name, declared)
    if fault then
      refuse(fault)
    end
  end
  vim.api.nvim_create_user_command("McpGateway", function(command)
    require("mcp_gateway.status").run(command.args)
  end, {
    nargs = "?",
    desc = "Show the tools of this editor and the attached gateways",
    complete = function()
      return { "status" }
    end,
  })
  for _, channel in ipairs(M.channels()) do
    require("mcp_gateway.rpc").report(channel, "changed")
  end
  if type(options.provide) == "table" then
    vim.schedule(function()
      require("mcp_gateway.provider").start(options.provide)
    end)
  elseif package.loaded["mcp_gateway.provider"] then
    require("mcp_gateway.provider").stop()
  end
end

--- The channels of attached gateways.
function M.channels()
  local found = {}
  for _, channel in ipairs(vim.api.nvim_list_chans()) do
    if channel.client and vim.startswith(channel.client.name or "", M.CLIENT) then
      found[#found + 1] = channel.id
    end
  end
  return found
end

--- The declared tools by name, as `{ name, description, input_schema, title, annotations }`.
function M.get_registered_tools()
  local found = vim.empty_dict()
  for name, declared in pairs(tools) do
    local schema = { type = "object" }
    for keyword, value in pairs(declared.parameters or {}) do
      schema[keyword] = value
    end
    schema.properties = schema.properties or vim.empty_dict()
    found[name] = {
      name = name,
      description = declared.description,
      input_schema = schema,
      title = declared.title,
      annotations = declared.annotations,
    }
  end
  return found
end

--- Faults of the declarations that `setup` refused.
function M.faults()
  return faults
end

--- False if this editor does not share buffers, diagnostics and the selection.
function M.shares_resources()
  return options.resources ~= false
end

--- Starts a tool; `done` receives its result once. Returns the function that cancels it, if the handler gave one.
function M.start(name, params, done)
  local tool, is_done = tools[name], false
  local function finish(result)
    if is_done then
      return
    end
    is_done = true
    local fault = fault_of(result)
    done(fault and failed(fault) or result)
  end
  if not tool then
    finish(M.error("TOOL_NOT_FOUND", ("Tool not found: %s"):format(tostring(name))))
    return nil
  end
  local ok, returned = pcall(tool.handler, params, tool.async and finish or nil)
  if not ok then
    finish(failed(describe(returned)))
  elseif not tool.async then
    finish(returned)
  elseif vim.is_callable(returned) and not is_done then
    return returned
  end
end

--- Runs a tool and returns its result; a tool with `async = true` is waited for.
function M.execute_tool(name, params)
  local result
  M.start(name, params == nil and vim.empty_dict() or params, function(given)
    result = given
  end)
  if result == nil then
    vim.wait(ASYNC_WAIT_MS, function()
      return result ~= nil
    end, 20)
  end
  return result or failed(("no result within %d s"):format(ASYNC_WAIT_MS / 1000))
end

return M
