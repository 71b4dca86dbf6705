--- JSON text of Lua values. A value that JSON cannot express is an error with a reason; nothing is left out silently.
local M = {}

--- Keeps a function that loops with `pairs` out of the compiler: LuaJIT of Debian 12 now and then ends such a loop early,
--- and an object comes out empty.
local function interpreted(loops)
  if jit then
    jit.off(loops)
  end
  return loops
end

--- Limit on the bytes of one text; the gateway refuses longer ones.
M.LIMIT = 4 * 1024 * 1024
--- The gateway counts 100,000 values and 20,000 containers of a message; the rest is for the message around the value.
local DEPTH, VALUES, CONTAINERS = 60, 99900, 19900

local ESCAPES = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t", ["\127"] = "\\u007f" }
for byte = 0, 31 do
  local character = string.char(byte)
  ESCAPES[character] = ESCAPES[character] or ("\\u%04x"):format(byte)
end

--- Keywords of JSON Schema by what they contain; elsewhere an empty table is a list.
local KEYWORDS = {
  properties = "map",
  patternProperties = "map",
  ["$defs"] = "map",
  definitions = "map",
  dependentSchemas = "map",
  dependentRequired = "map_of_lists",
  items = "schema",
  additionalItems = "schema",
  additionalProperties = "schema",
  unevaluatedItems = "schema",
  unevaluatedProperties = "schema",
  propertyNames = "schema",
  contains = "schema",
  contentSchema = "schema",
  ["not"] = "schema",
  ["if"] = "schema",
  ["then"] = "schema",
  ["else"] = "schema",
  allOf = "list",
  anyOf = "list",
  oneOf = "list",
  prefixItems = "list",
}
local IS_OBJECT = { schema = true, map = true, map_of_lists = true, object = true }
local CHILDREN = { map = "schema", list = "schema", map_of_lists = "plain" }

--- The keys of a table of names, sorted.
M.sorted_keys = interpreted(function(value)
  local names = {}
  for name in pairs(value) do
    names[#names + 1] = name
  end
  table.sort(names)
  return names
end)

--- Length of the UTF-8 sequence at `place` (RFC 3629), or nil.
local function sequence(text, place)
  local first, second, third, fourth = text:byte(place, place + 3)
  local function follows(byte, low, high)
    return byte ~= nil and byte >= (low or 0x80) and byte <= (high or 0xBF)
  end
  if first < 0x80 then
    return 1
  elseif first >= 0xC2 and first <= 0xDF then
    return follows(second) and 2 or nil
  elseif first >= 0xE0 and first <= 0xEF then
    local low, high = first == 0xE0 and 0xA0 or nil, first == 0xED and 0x9F or nil
    return follows(second, low, high) and follows(third) and 3 or nil
  elseif first >= 0xF0 and first <= 0xF4 then
    local low, high = first == 0xF0 and 0x90 or nil, first == 0xF4 and 0x8F or nil
    return follows(second, low, high) and follows(third) and follows(fourth) and 4 or nil
  end
end

--- The position of the first byte that is not UTF-8, or nil.
function M.invalid_at(text)
  local place = text:find("[\128-\255]")
  while place do
    local length = sequence(text, place)
    if not length then
      return place
    end
    place = text:find("[\128-\255]", place + length)
  end
end

--- The text with `?` for each byte that is not UTF-8, for texts of other plugins.
function M.clean(text)
  local place = M.invalid_at(text)
  local parts = {}
  while place do
    parts[#parts + 1] = text:sub(1, place - 1) .. "?"
    text = text:sub(place + 1)
    place = M.invalid_at(text)
  end
  return table.concat(parts) .. text
end

local function put(state, piece)
  state.size = state.size + #piece
  if state.size > M.LIMIT then
    error({ reason = ("it has more than %d bytes"):format(M.LIMIT) })
  end
  state[#state + 1] = piece
end

local function put_string(state, text)
  local place = M.invalid_at(text)
  if place then
    error({ reason = ("a string is not UTF-8 at byte %d"):format(place) })
  end
  put(state, '"' .. text:gsub('[%c"\\]', ESCAPES) .. '"')
end

local function put_number(state, number)
  if number ~= number or number == math.huge or number == -math.huge then
    error({ reason = "a number is not finite" })
  end
  local is_integer = number == math.floor(number) and math.abs(number) <= 2 ^ 53
  put(state, (is_integer and "%d" or "%.17g"):format(number))
end

--- "list", "object" or "empty"; an error for a table that is both.
local shape = interpreted(function(value)
  local count, texts = 0, 0
  for key in pairs(value) do
    count = count + 1
    texts = texts + (type(key) == "string" and 1 or 0)
  end
  if count == 0 then
    return getmetatable(value) == getmetatable(vim.empty_dict()) and "object" or "empty"
  elseif texts == count then
    return "object"
  elseif texts == 0 and #value == count then
    for place = 1, count do
      if value[place] == nil then
        error({ reason = "a list has holes" })
      end
    end
    return "list"
  end
  error({ reason = "a table has both names and positions, or a list has holes" })
end)

local function count(state, kind, most)
  state[kind] = state[kind] + 1
  if state[kind] > most then
    error({ reason = ("it has more than %d %s"):format(most, kind) })
  end
end

local write

local function write_list(state, value, depth, kind)
  put(state, "[")
  for place, item in ipairs(value) do
    put(state, place > 1 and "," or "")
    write(state, item, depth, CHILDREN[kind] or kind)
  end
  put(state, "]")
end

local function write_object(state, value, depth, kind)
  put(state, "{")
  for place, name in ipairs(M.sorted_keys(value)) do
    put(state, place > 1 and "," or "")
    put_string(state, name)
    put(state, ":")
    local inner = CHILDREN[kind]
    if kind == "schema" then
      local is_default = name == "default" or name == "const"
      inner = is_default and value.type == "object" and "object" or KEYWORDS[name]
    end
    write(state, value[name], depth, inner)
  end
  put(state, "}")
end

function write(state, value, depth, kind)
  local is = type(value)
  count(state, "values", VALUES)
  if value == nil or value == vim.NIL then
    put(state, "null")
  elseif is == "boolean" then
    put(state, tostring(value))
  elseif is == "number" then
    put_number(state, value)
  elseif is == "string" then
    put_string(state, value)
  elseif is ~= "table" then
    error({ reason = ("a %s cannot be sent"):format(is) })
  elseif depth > DEPTH then
    error({ reason = ("tables are nested more than %d deep, or contain themselves"):format(DEPTH) })
  else
    count(state, "containers", CONTAINERS)
    local found = shape(value)
    if next(value) == nil then
      count(state, "values", VALUES) -- as the gateway counts it
    end
    if found == "object" or found == "empty" and IS_OBJECT[kind] then
      write_object(state, value, depth + 1, kind)
    else
      write_list(state, value, depth + 1, kind)
    end
  end
end

--- The JSON text of a value; `kind` is "schema" for a JSON Schema. Raises a text.
function M.encode(value, kind)
  local state = { size = 0, values = 0, containers = 0 }
  local ok, fault = pcall(write, state, value, 1, kind)
  if not ok then
    error(type(fault) == "table" and fault.reason or fault, 0)
  end
  return table.concat(state)
end

--- The value of a JSON text: null members of objects are absent, null elements of lists are `vim.NIL`.
function M.decode(text)
  return vim.json.decode(text, { luanil = { object = true } })
end

return M
