-- Builds the sandbox. Receives the libraries and native helpers; returns the globals of scripts and the protected call.
local libraries, natives = ...

local READONLY = "Attempt to modify a readonly table"
local raw_next, raw_pairs, raw_set, raw_get = next, pairs, rawset, rawget
local raw_setmetatable, raw_getmetatable = setmetatable, getmetatable
local raw_pcall, raw_xpcall, raw_resume = pcall, xpcall, coroutine.resume
local raw_loadstring, raw_collectgarbage = loadstring, collectgarbage
local type, error, tostring, match, byte, concat = type, error, tostring, string.match, string.byte, table.concat

-- From a read-only table to the table with its fields, and to its metatable as scripts see it.
local contents, metatables = {}, {}

local function refuse()
  error(READONLY, 2)
end

local function protect(fields)
  local shown = {}
  contents[shown] = fields
  raw_setmetatable(shown, {__index = fields, __newindex = refuse})
  return shown
end

local globals = {}

local function missing(_, name)
  error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
end
raw_setmetatable(globals, {__index = missing})

for name in ("assert error gcinfo ipairs rawequal select tonumber tostring type unpack _VERSION"):gmatch("%S+") do
  globals[name] = _G[name]
end

function globals.next(t, key)
  if t == nil then error("bad argument #1 to 'next' (table expected, got nil)", 2) end
  return raw_next(contents[t] or t, key)
end

function globals.pairs(t)
  if type(t) ~= "table" then
    error("bad argument #1 to 'pairs' (table expected, got " .. (t == nil and "nil" or type(t)) .. ")", 2)
  end
  if contents[t] then return globals.next, t, nil end
  return raw_next, t, nil
end

function globals.rawset(t, key, value)
  if contents[t] then error(READONLY, 0) end
  return raw_set(t, key, value)
end

function globals.rawget(t, key)
  return raw_get(contents[t] or t, key)
end

function globals.setmetatable(t, metatable)
  if contents[t] then error(READONLY, 0) end
  return raw_setmetatable(t, metatable)
end

function globals.getmetatable(value)
  if contents[value] then return metatables[value] end
  return raw_getmetatable(value)
end

-- The result of a protected call, with an error as a text if it has one.
local function settled(ok, problem, ...)
  if ok then return ok, problem, ... end
  return false, natives.flat(problem)
end

function globals.pcall(...)
  return settled(raw_pcall(...))
end

function globals.xpcall(call, handler)
  return raw_xpcall(call, function(problem)
    -- Lua calls no hook while it handles the error of a hook, so a handler that never ends could not be stopped.
    local shown, is_stopped = natives.plain(problem)
    if is_stopped then return shown end
    return handler(shown)
  end)
end

function globals.loadstring(text, name)
  if byte(text) == 27 then return nil, "bytecode is not accepted" end
  -- The name stays on the stack while Lua parses, because the parser does not keep it.
  local kept = match(name or text, "^%Z*")
  return raw_loadstring(text, kept)
end

function globals.load(reader, name)
  local pieces = {}
  while true do
    local piece = reader()
    if piece == nil or piece == "" then break end
    pieces[#pieces + 1] = piece
  end
  return globals.loadstring(concat(pieces), name or "=(load)")
end

function globals.collectgarbage(option, number)
  if option == nil or option == "collect" or option == "count" or option == "step" then
    return raw_collectgarbage(option or "collect", number)
  end
  return 0
end

-- The functions of `table` that set fields do not ask a table's metatable.
local insert, remove, sort = table.insert, table.remove, table.sort

function libraries.table.insert(t, ...)
  if contents[t] then error(READONLY, 2) end
  return insert(t, ...)
end

function libraries.table.remove(t, ...)
  if contents[t] then error(READONLY, 2) end
  return remove(t, ...)
end

function libraries.table.sort(t, ...)
  if contents[t] then error(READONLY, 2) end
  return sort(t, ...)
end

function libraries.coroutine.resume(...)
  local function resumed(ok, problem, ...)
    if ok then return ok, problem, ... end
    return false, (natives.plain(problem))
  end
  return resumed(raw_resume(...))
end

for name, library in raw_pairs(libraries) do
  globals[name] = protect(library)
end

local shown = protect(globals)
globals._G = shown
metatables[shown] = protect({__index = missing})
local strings = raw_getmetatable("")
strings.__index = libraries.string
strings.__metatable = protect({__index = globals.string})

return shown, globals, raw_xpcall
