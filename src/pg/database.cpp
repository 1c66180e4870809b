#include "pg/database.hpp"

namespace fencepost::pg {

Database::Database(Runtime& runtime, ConnectOptions connect, const PoolOptions& pool, Metrics& metrics)
    : runtime_(runtime), connector_(std::move(connect)) {
  for (std::size_t i = 0; i < runtime.size(); ++i) {
    pools_.push_back(std::make_unique<Pool>(runtime.executor(i), connector_, pool, metrics));
  }
}

awaitable<> Database::start() {
  co_await runtime_.on_every_loop([this](std::size_t loop) -> awaitable<> {
    pools_[loop]->start();
    co_return;
  });
}

awaitable<> Database::stop(std::chrono::milliseconds grace) {
  co_await runtime_.on_every_loop([this, grace](std::size_t loop) { return pools_[loop]->stop(grace); });
}

}  // namespace fencepost::pg
