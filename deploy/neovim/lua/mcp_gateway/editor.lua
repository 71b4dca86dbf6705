--- Buffers, diagnostics and the selection of this editor, and reports of their changes.
local M = {}

-- LuaJIT of Debian 12 now and then compiles `pairs` wrongly: the loop ends early, and an object comes out empty.
if jit then
  jit.off(true, true)
end

local json = require("mcp_gateway.json")

local LISTED = 1000
local DEBOUNCE_MS = 500
--- Limit on the buffers whose texts are watched with `buffers`: a command may change all of them at once.
local WATCHED = 200
local SEVERITIES = { "error", "warning", "information", "hint" }
local EVENTS = {
  buffers = { "BufAdd", "BufDelete", "BufFilePost", "BufModifiedSet", "BufWritePost", "BufEnter" },
  diagnostics = { "DiagnosticChanged" },
  selection = { "CursorMoved", "CursorMovedI", "ModeChanged", "BufEnter" },
}

local function path_of(buffer)
  return json.clean(vim.api.nvim_buf_get_name(buffer))
end

local function is_shared(buffer)
  return vim.api.nvim_buf_is_valid(buffer) and vim.bo[buffer].buflisted
end

--- The first `LISTED` items and the number of all.
local function cut(items, name)
  return json.encode({ [name] = vim.list_slice(items, 1, LISTED), total = #items, truncated = #items > LISTED })
end

local function read_buffers()
  local found = {}
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    if is_shared(buffer) then
      found[#found + 1] = {
        number = buffer,
        path = path_of(buffer),
        filetype = vim.bo[buffer].filetype,
        modified = vim.bo[buffer].modified,
        loaded = vim.api.nvim_buf_is_loaded(buffer),
        lines = vim.api.nvim_buf_is_loaded(buffer) and vim.api.nvim_buf_line_count(buffer) or nil,
        current = buffer == vim.api.nvim_get_current_buf(),
      }
    end
  end
  return cut(found, "buffers")
end

local function read_buffer(buffer)
  if not is_shared(buffer) then
    error("not found", 0)
  elseif not vim.api.nvim_buf_is_loaded(buffer) then
    error("the buffer is not loaded", 0)
  end
  local size = vim.api.nvim_buf_get_offset(buffer, vim.api.nvim_buf_line_count(buffer))
  if size > json.LIMIT then
    error(("the buffer has %d bytes; the limit is %d"):format(size, json.LIMIT), 0)
  end
  return table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), "\n")
end

local function read_diagnostics()
  local found = {}
  for _, one in ipairs(vim.diagnostic.get()) do
    if is_shared(one.bufnr) then
      found[#found + 1] = {
        buffer = one.bufnr,
        path = path_of(one.bufnr),
        line = one.lnum + 1,
        column = one.col + 1,
        severity = SEVERITIES[one.severity],
        message = json.clean(tostring(one.message):sub(1, 2000)),
        source = one.source and json.clean(tostring(one.source)),
        code = one.code and json.clean(tostring(one.code)),
      }
    end
  end
  return cut(found, "diagnostics")
end

--- Lines of the selection; in a block, the same columns of each line.
local function selected(mode, first, last)
  local lines = vim.api.nvim_buf_get_lines(0, first[2] - 1, last[2], false)
  if mode == "V" or #lines == 0 then
    return lines
  end
  local left, right = math.min(first[3], last[3]), math.max(first[3], last[3])
  local is_block = mode ~= "v"
  for place, line in ipairs(lines) do
    local from = (is_block and left) or (place == 1 and first[3]) or 1
    local to = (is_block and right) or (place == #lines and last[3]) or #line
    local character = to <= #line and vim.fn.matchstr(line, ".", to - 1) or ""
    lines[place] = line:sub(from, to - 1 + math.max(#character, 1))
  end
  return lines
end

local function read_selection()
  local buffer, mode = vim.api.nvim_get_current_buf(), vim.api.nvim_get_mode().mode:sub(1, 1)
  local is_active = mode == "v" or mode == "V" or mode == "\22"
  local first = is_active and vim.fn.getpos("v") or vim.fn.getpos("'<")
  local last = is_active and vim.fn.getpos(".") or vim.fn.getpos("'>")
  if first[2] > last[2] or first[2] == last[2] and first[3] > last[3] then
    first, last = last, first
  end
  local cursor = vim.api.nvim_win_get_cursor(0)
  local found = {
    buffer = buffer,
    path = path_of(buffer),
    active = is_active,
    cursor = { line = cursor[1], column = cursor[2] + 1 },
  }
  if first[2] > 0 and is_shared(buffer) then
    mode = is_active and mode or vim.fn.visualmode()
    found.first, found.last = { line = first[2], column = first[3] }, { line = last[2], column = last[3] }
    found.text = json.clean(table.concat(selected(mode, first, last), "\n"))
  end
  return json.encode(found)
end

local READERS = {
  buffers = read_buffers,
  buffer = read_buffer,
  diagnostics = read_diagnostics,
  selection = read_selection,
}

--- The content of a resource: JSON, or the bytes of a buffer. Raises a text, "not found" for what does not exist.
function M.read(kind, number)
  return READERS[kind](number)
end

--- The identity of what each owner watches; another one ends its earlier reports.
local watched = {}

--- Calls `touch` after each change of a buffer, however it is made, while `is_watched` returns true.
local function watch_buffer(number, is_watched, touch)
  if not is_shared(number) then
    return
  end
  vim.api.nvim_buf_attach(number, false, {
    on_lines = function()
      touch()
      return not is_watched()
    end,
    on_reload = touch,
    on_detach = touch,
  })
end

--- Watches every listed buffer, and those that are read later.
local function watch_buffers(group, is_watched, touch)
  local attached, count = {}, 0
  local function add(number)
    if attached[number] or count == WATCHED or not vim.api.nvim_buf_is_loaded(number) then
      return
    end
    attached[number], count = true, count + 1
    watch_buffer(number, is_watched, function()
      if attached[number] and not vim.api.nvim_buf_is_loaded(number) then
        attached[number], count = nil, count - 1
      end
      touch("buffer/" .. number)
    end)
  end
  for _, number in ipairs(vim.api.nvim_list_bufs()) do
    add(number)
  end
  vim.api.nvim_create_autocmd({ "BufEnter", "BufReadPost" }, {
    group = group,
    callback = function(event)
      add(event.buf)
    end,
  })
end

--- Reports changes of the named resources, at most once in `DEBOUNCE_MS` each, until `report` returns false.
--- With `buffers`, changes of the text of each buffer are reported as well.
function M.watch(owner, names, report)
  local group = vim.api.nvim_create_augroup("mcp_gateway_" .. owner, { clear = true })
  local mine, due = {}, {}
  watched[owner] = mine
  if #names == 0 then
    watched[owner] = nil
    vim.api.nvim_del_augroup_by_id(group)
    return
  end
  local function is_watched()
    return watched[owner] == mine
  end
  local function touch(name)
    if due[name] or not is_watched() then
      return
    end
    due[name] = true
    vim.defer_fn(function()
      due[name] = nil
      if is_watched() and not report(name) then
        M.watch(owner, {})
      end
    end, DEBOUNCE_MS)
  end
  for _, name in ipairs(names) do
    local function changed()
      touch(name)
    end
    local number = tonumber(name:match("^buffer/(%d+)$"))
    if number then
      watch_buffer(number, is_watched, changed)
    elseif EVENTS[name] then
      vim.api.nvim_create_autocmd(EVENTS[name], { group = group, callback = changed })
    end
    if name == "buffers" then
      watch_buffers(group, is_watched, touch)
    end
  end
end

return M
