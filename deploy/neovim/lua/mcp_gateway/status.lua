--- The command `:McpGateway`.
local M = {}

-- LuaJIT of Debian 12 now and then compiles `pairs` wrongly: the loop ends early, and an object comes out empty.
if jit then
  jit.off(true, true)
end

--- Shows the tools of this editor, the faults of its configuration and the attached gateways.
function M.run(argument)
  if argument ~= "" and argument ~= "status" then
    vim.notify("mcp_gateway: unknown command; use `:McpGateway status`", vim.log.levels.ERROR)
    return
  end
  local mcp = require("mcp_gateway")
  local _, notices, names = require("mcp_gateway.calls").definitions()
  local lines = {
    ("attached gateways: %d"):format(#mcp.channels()),
    ("listening at: %s"):format(vim.v.servername ~= "" and vim.v.servername or "nothing (start with --listen)"),
    ("tools: %s"):format(#names > 0 and table.concat(names, ", ") or "none"),
  }
  if package.loaded["mcp_gateway.provider"] then
    lines[#lines + 1] = "connection to the gateway: " .. require("mcp_gateway.provider").status
  end
  for _, fault in ipairs(notices) do
    lines[#lines + 1] = "refused: " .. fault
  end
  vim.notify(table.concat(lines, "\n"), vim.log.levels.INFO)
end

return M
