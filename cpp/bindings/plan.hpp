// Persistent calls, whose arguments are checked once.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>

namespace ringlet::bindings {

class Plan {
 public:
  Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  virtual ~Plan() = default;

  virtual pybind11::object run() = 0;
};

// A callable without arguments that runs the plan.
pybind11::object callable_of(std::unique_ptr<Plan> plan);

}  // namespace ringlet::bindings
