#include <pybind11/pybind11.h>

// Must follow Python.h, which pybind11 includes.
#include <structmember.h>

#include <cstddef>
#include <exception>
#include <memory>
#include <utility>

#include "arguments.hpp"
#include "call_place.hpp"
#include "interpreter.hpp"
#include "members.hpp"
#include "plan.hpp"
#include "registers.hpp"

namespace py = pybind11;
using py::literals::operator""_a;

namespace ringlet::bindings {

namespace {

// An all-reduce of one rank.
class MemberPlan final : public Plan {
 public:
  MemberPlan(HeldMember member, const py::object& array, core::Op op, collectives::Algorithm algorithm,
             const py::object& out)
      : member_(std::move(member)),
        arguments_(py::make_tuple(array), out.is_none() ? out : py::object(py::make_tuple(out)), &op),
        op_(op),
        algorithm_(algorithm),
        out_(out) {
    buffer_of(array);  // throws for numbers, whose values cannot change later
    collectives::check_supported(op, arguments_.buffers().front().dtype);
  }

  py::object run() override {
    note_place();
    member_.wait_for_turn();
    const HeldMember::Use use(member_);
    arguments_.check_memory();
    collectives::Results results;
    sync::Poll* const poll = signal_poll();
    without_interpreter([&] { results = member_.all_reduce(arguments_.buffers(), op_, algorithm_, poll); },
                        member_.takes_turns());
    if (results.empty()) return out_;
    const collectives::Buffer& buffer = arguments_.buffers().front();
    return array_on(std::move(results.front()), core::result_dtype(op_, buffer.dtype), buffer.shape);
  }

 private:
  HeldMember member_;
  Arguments arguments_;
  core::Op op_;
  collectives::Algorithm algorithm_;
  py::object out_;
};

// Called through Python's vectorcall protocol, which costs a fraction of a bound method; for a few bytes, this is most
// of the call.
struct PlanObject {
  PyObject_HEAD vectorcallfunc call;
  Plan* plan;
};

// pybind11 translates C++ exceptions of the functions that it wraps, but not of this one. A failed call is therefore
// reported by a wrapped function.
PyObject* rethrow = nullptr;

PyObject* call_plan(PyObject* self, PyObject* const*, std::size_t num_args, PyObject* names) {
  if (PyVectorcall_NARGS(num_args) != 0 || (names != nullptr && PyTuple_GET_SIZE(names) != 0)) {
    PyErr_SetString(PyExc_TypeError, "a plan takes no arguments: it works on the arrays that it was made for.");
    return nullptr;
  }
  try {
    return reinterpret_cast<PlanObject*>(self)->plan->run().release().ptr();
  } catch (py::error_already_set& error) {
    error.restore();
    return nullptr;
  } catch (...) {
    std::exception_ptr raised = std::current_exception();
    const py::capsule carrier(&raised, [](void*) {});
    return PyObject_CallOneArg(rethrow, carrier.ptr());
  }
}

void destroy_plan(PyObject* self) {
  const std::unique_ptr<Plan> last(std::exchange(reinterpret_cast<PlanObject*>(self)->plan, nullptr));
  PyTypeObject* const type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyTypeObject* make_plan_type() {
  static PyMemberDef members[] = {
      {"__vectorcalloffset__", T_PYSSIZET, offsetof(PlanObject, call), READONLY, nullptr},
      {nullptr, 0, 0, 0, nullptr},
  };
  static PyType_Slot slots[] = {
      {Py_tp_dealloc, reinterpret_cast<void*>(destroy_plan)},
      {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
      {Py_tp_members, members},
      {0, nullptr},
  };
  static PyType_Spec spec = {"ringlet._core.Plan", sizeof(PlanObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                             slots};
  return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
}

PyTypeObject* plan_type = nullptr;

}  // namespace

py::object callable_of(std::unique_ptr<Plan> plan) {
  auto* const made = reinterpret_cast<PlanObject*>(plan_type->tp_alloc(plan_type, 0));
  if (made == nullptr) throw py::error_already_set();
  made->call = call_plan;
  made->plan = plan.release();
  return py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(made));
}

void register_plan(py::module_& m) {
  plan_type = make_plan_type();
  if (plan_type == nullptr) throw py::error_already_set();
  const py::cpp_function throw_again([](const py::capsule& carrier) -> py::object {
    std::rethrow_exception(*carrier.get_pointer<std::exception_ptr>());
  });
  rethrow = throw_again.inc_ref().ptr();
  py::class_<HeldMember> member(m.attr("Member"));
  member.def(
      "plan_all_reduce",
      [](const HeldMember& self, const py::object& array, int op, int algorithm, const py::object& out) {
        const HeldMember::Use use(self);
        return callable_of(std::make_unique<MemberPlan>(self, array, op_of(op), algorithm_of(algorithm), out));
      },
      "array"_a, "op"_a, "algorithm"_a, "out"_a);
}

}  // namespace ringlet::bindings
