-- wrk: POST /api/v1/transfers. KEY: the API key; MODE: sync or pool; SHAPE: random (1,000 members pay each other), hot
-- (one payer) or opposite (two members pay each other); ITEMS: how many are in one request; GUILD.
local key, mode, shape, guild = os.getenv("KEY"), os.getenv("MODE"), os.getenv("SHAPE"), os.getenv("GUILD")
local items = tonumber(os.getenv("ITEMS") or "1")
local headers = { ["Authorization"] = "Bearer " .. key, ["Content-Type"] = "application/json" }
local count = 0

local function parties()
  if shape == "hot" then return 1, math.random(2, 1000) end
  if shape == "opposite" then
    count = count + 1
    if count % 2 == 0 then return 1, 2 end
    return 2, 1
  end
  local from = math.random(1, 1000)
  local to = math.random(1, 999)
  if to >= from then to = to + 1 end
  return from, to
end

local function one()
  local from, to = parties()
  return string.format('{"guildId":"%s","initiatorId":"%d","targetId":"%d","amount":"1","mode":"%s"}', guild, from, to, mode)
end

function init() math.randomseed(os.time()) end

function request()
  if items == 1 then return wrk.format("POST", "/api/v1/transfers", headers, one()) end
  local bodies = {}
  for i = 1, items do bodies[i] = one() end
  return wrk.format("POST", "/api/v1/transfers/batch", headers, '{"items":[' .. table.concat(bodies, ",") .. "]}")
end

function done(summary, latency)
  io.write(string.format("requests %d errors %d duration_us %d p50_us %d p99_us %d\n", summary.requests,
    summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.timeout, summary.duration,
    latency:percentile(50), latency:percentile(99)))
end
