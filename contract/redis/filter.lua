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

-- The job passes all filters but those of its error.
local function record_passes(filter, record)
  local at, list = cmsgpack.unpack_one(record)
  if filter.group and (list[5] or '') ~= filter.group or filter.key and list[7] ~= filter.key then return false end
  if filter.pushedFrom and list[2] < filter.pushedFrom or filter.pushedBefore and list[2] >= filter.pushedBefore then return false end
  local JSON = 48
  return not filter.text or string.byte(record, at + 1) == JSON and string.find(record, filter.text, at + 2, true) ~= nil
end
