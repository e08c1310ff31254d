-- What scripts with a filter share: a map, in the names of contract/operations.md.

local function has(packed, text) return not text or string.find(packed, text, 1, true) ~= nil end

-- packed: the job's error, or false. Most of those without the text are not unpacked. @return whether it passes the filters of the error
local function error_passes(filter, packed)
  if not packed or not has(packed, filter.errorText) or not has(packed, filter.errorCode) then return false end
  local is_read, failure = pcall(cmsgpack.unpack, packed)
  if not is_read or type(failure) ~= 'table' then return false end
  if filter.errorCode and failure[1] ~= filter.errorCode then return false end
  return not filter.errorText or string.find(failure[3] or '', filter.errorText, 1, true) ~= nil
end

local JSON = 48

-- body: JSON, of whatever form. @return whether it has the value at the place: contract/operations.md, list
local function data_has(body, wanted)
  local is_read, at = pcall(cjson.decode, body)
  if not is_read then return false end
  for _, name in ipairs(wanted.path) do
    -- Places in arrays are numbers here, and no name is one.
    if type(at) ~= 'table' then return false end
    at = at[name]
  end
  local value = wanted.value
  if type(at) == 'string' then return at == value end
  if type(at) == 'number' then
    local is_number = string.find(value, '^%-?%d+%.?%d*[eE]?[+-]?%d*$') and not string.find(value, '^%-?0%d')
      and not string.find(value, '%.[eE]') and not string.find(value, '[.eE+-]$') and not string.find(value, '[eE][+-]?%d%d%d%d')
      and not string.find(value, '%d[+-]')
    return is_number ~= nil and is_number ~= false and at == tonumber(value)
  end
  return type(at) == 'boolean' and tostring(at) == value or at == cjson.null and value == 'null'
end

-- The job passes all filters but those of its error.
local function record_passes(filter, record)
  local list, size = facts(record)
  if filter.group and (list[5] or '') ~= filter.group or filter.key and list[7] ~= filter.key then return false end
  if filter.pushedFrom and list[2] < filter.pushedFrom or filter.pushedBefore and list[2] >= filter.pushedBefore then return false end
  if not filter.text and not filter.data then return true end
  if string.byte(record, size + 1) ~= JSON then return false end
  if filter.text and not string.find(record, filter.text, size + 2, true) then return false end
  return not filter.data or data_has(string.sub(record, size + 2), filter.data)
end
