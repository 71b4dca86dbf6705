--- Functions that an attached gateway calls over the editor's RPC channel (`nvim_exec_lua`).
---
--- Each returns at once. A reply follows as notifications `mcp_gateway`: `part` with bytes, then `done` with a fault or nil.
local M = {}

-- LuaJIT of Debian 12 now and then compiles `pairs` wrongly: the loop ends early, and an object comes out empty.
if jit then
  jit.off(true, true)
end

local mcp = require("mcp_gateway")
local calls = require("mcp_gateway.calls")
local json = require("mcp_gateway.json")
local editor = require("mcp_gateway.editor")

M.PROTOCOL = 1
local PART = 48 * 1024

--- Sends a notification; false if the gateway is not attached any more.
function M.report(channel, ...)
  return (pcall(vim.rpcnotify, channel, "mcp_gateway", ...))
end

local function reply(channel, call, bytes, fault)
  for place = 1, #(bytes or ""), PART do
    M.report(channel, "part", call, bytes:sub(place, place + PART - 1))
  end
  M.report(channel, "done", call, fault)
end

--- Runs `make` and replies with what it returns, or with its error.
local function answer(channel, call, make)
  local ok, made = pcall(make)
  reply(channel, call, ok and made or nil, not ok and tostring(made) or nil)
end

--- Introduces a gateway, which has set this client name; returns its channel and what this editor is.
function M.attach(client)
  for _, channel in ipairs(vim.api.nvim_list_chans()) do
    if channel.client and channel.client.name == client then
      local version = vim.version()
      local title = ("Neovim %d.%d.%d"):format(version.major, version.minor, version.patch)
      return { protocol = M.PROTOCOL, channel = channel.id, title = title }
    end
  end
end

--- Replies with the declared tools; one whose definition cannot be sent is a notice instead.
function M.discover(channel, call)
  answer(channel, call, function()
    local tools, notices = calls.definitions()
    local shares = tostring(mcp.shares_resources())
    return ('{"tools":%s,"notices":%s,"resources":%s}'):format(tools, json.encode(notices), shares)
  end)
end

--- Runs a tool with arguments in JSON and replies with its result in JSON.
function M.execute(channel, call, name, text)
  calls.run(channel, call, name, json.decode(text), function(result)
    reply(channel, call, result)
  end)
end

--- Drops the result of a call, and cancels it if its handler can be cancelled.
function M.cancel(channel, call)
  calls.cancel(channel, call)
end

--- Replies with the content of a resource: JSON, or the bytes of a buffer.
function M.read(channel, call, kind, number)
  answer(channel, call, function()
    if not mcp.shares_resources() then
      error("not found", 0)
    end
    return editor.read(kind, number)
  end)
end

--- Reports updates of these resources from now on, and of no others.
function M.watch(channel, names)
  editor.watch(channel, mcp.shares_resources() and names or {}, function(name)
    return M.report(channel, "updated", name)
  end)
end

--- Ends what this gateway started.
function M.detach(channel)
  editor.watch(channel, {})
  calls.cancel_all(channel)
end

return M
