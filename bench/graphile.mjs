// Adds JOBS jobs that do nothing to graphile-worker, runs them, and prints how many it ran per second.
import { Logger, makeWorkerUtils, run } from "graphile-worker";

const connectionString = process.env.DATABASE_URL;
const jobs = Number(process.env.JOBS);
const logger = new Logger(() => () => {});
const utils = await makeWorkerUtils({ connectionString, logger });
await utils.migrate();
await utils.withPgClient((client) =>
  client.query("SELECT graphile_worker.add_jobs(array_agg(('nothing', json_build_object('n', n), NULL, NULL, NULL, NULL, NULL, NULL)::graphile_worker.job_spec)) FROM generate_series(1, $1) AS n", [jobs]));
let left = jobs;
const begin = process.hrtime.bigint();
let finish;
const done = new Promise((resolve) => (finish = resolve));
const runner = await run({
  connectionString,
  concurrency: 16,
  maxPoolSize: 20,
  noHandleSignals: true,
  logger,
  taskList: { nothing: async () => { if (--left === 0) finish(); } },
});
await done;
console.log(Math.round(jobs / (Number(process.hrtime.bigint() - begin) / 1e9)));
await runner.stop();
await utils.release();
