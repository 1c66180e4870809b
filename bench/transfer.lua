-- A script for wrk: POST /api/v1/transfers. It reads from the environment:
--   MODE   sync or pool
--   SHAPE  random (1,000 members pay each other), hot (one payer) or opposite (two members pay each other)
--   GUILD  the guild's id
dofile(os.getenv("HERE") .. "/wrk_post.lua")
local mode, shape, guild = os.getenv("MODE"), os.getenv("SHAPE"), os.getenv("GUILD")
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

function init() math.randomseed(os.time()) end

post("/api/v1/transfers", function()
  local from, to = parties()
  return string.format('{"guildId":"%s","initiatorId":"%d","targetId":"%d","amount":"1","mode":"%s"}', guild, from, to, mode)
end)
