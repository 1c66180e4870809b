-- Shared by the scripts for wrk: POST one item, or ITEMS items as a batch, with the API key in KEY.
--
--   post("/api/v1/tx", one)   where one() returns the JSON of an item
local items = tonumber(os.getenv("ITEMS") or "1")
local headers = { ["Authorization"] = "Bearer " .. os.getenv("KEY"), ["Content-Type"] = "application/json" }

function post(path, one)
  function request()
    if items == 1 then return wrk.format("POST", path, headers, one()) end
    local bodies = {}
    for i = 1, items do bodies[i] = one() end
    return wrk.format("POST", path .. "/batch", headers, '{"items":[' .. table.concat(bodies, ",") .. "]}")
  end
end

function done(summary, latency)
  io.write(string.format("requests %d errors %d duration_us %d p50_us %d p99_us %d\n", summary.requests,
    summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.timeout, summary.duration,
    latency:percentile(50), latency:percentile(99)))
end
