-- What the scripts of a cache share. All keys of a call have one hash tag. A value of another type than a string, which is none of ours,
-- is overwritten. README.md lays out the head of a value.

local function head(key, from, to)
  if redis.call('TYPE', key).ok ~= 'string' then return '' end
  return redis.call('GETRANGE', key, from, to)
end

-- The version of the value at a key, empty where there is none.
local function version(key)
  return head(key, 2, 9)
end

-- Removes the chunks of the value at a key. Their names: prefix, version in hexadecimal, colon, number from 0.
local function removeChunks(key, prefix)
  local first = head(key, 0, 36)
  if #first < 37 or string.sub(first, 1, 2) ~= '\193\1' then return end
  local flags = string.byte(first, 11)
  if flags % 16 < 8 then return end
  local at = flags % 4 == 1 and 36 or 30
  local chunks = string.byte(first, at) * 256 + string.byte(first, at + 1)
  local hex = string.gsub(string.sub(first, 3, 10), '.', function (c) return string.format('%02x', string.byte(c)) end)
  for chunk = 0, chunks - 1 do redis.call('UNLINK', prefix .. hex .. ':' .. chunk) end
end
