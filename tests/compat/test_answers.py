"""Expressions answer what they answer under TensorFlow 2.21.

Recorded from tensorflow-cpu 2.21.0 (NumPy 2.4, Python 3.11), two logical CPUs: the same expressions were evaluated with
``import tensorflow as tf``, and the answers written as `shown` writes them. A name stands for an error of that class.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ringlet.compat import tf

D = tf.data.Dataset


def shown(value: Any) -> str:
    """An answer as text: T is a tensor and N a value of NumPy, each with its dtype."""
    name = type(value).__name__
    if isinstance(value, tf.Tensor):
        array = value.numpy()
        numbers = array.tolist() if hasattr(array, "tolist") else array
        text = f"T({value.dtype.name.replace('object', 'string')},{tuple(value.shape)},{numbers})"
    elif name in ("PerReplica", "Mirrored"):
        text = name + str([shown(component) for component in value.values])
    elif isinstance(value, (list, tuple)):
        text = f"{name}[{','.join(map(shown, value))}]"
    elif isinstance(value, dict):
        text = "{" + ",".join(f"{key}:{shown(item)}" for key, item in value.items()) + "}"
    elif isinstance(value, tf.Variable):
        text = f"V({shown(value.read_value())})"
    elif isinstance(value, (np.ndarray, np.generic)):
        text = f"N({value.dtype},{value.tolist()})"
    else:
        text = "DS" if isinstance(value, D) else repr(value)
    return text


# expression, answer; `s` is a MirroredStrategy of two CPUs
DATASETS: list[tuple[str, str]] = [
    ("list(D.from_tensor_slices([1,2,3]))", "list[T(int32,(),1),T(int32,(),2),T(int32,(),3)]"),
    (
        "list(D.from_tensor_slices(([1,2],[1.5,2.5])))",
        "list[tuple[T(int32,(),1),T(float32,(),1.5)],tuple[T(int32,(),2),T(float32,(),2.5)]]",
    ),
    (
        "list(D.from_tensor_slices({'a':[1,2],'b':['x','y']}))",
        "list[{a:T(int32,(),1),b:T(string,(),b'x')},{a:T(int32,(),2),b:T(string,(),b'y')}]",
    ),
    ("list(D.from_tensors([1,2]))", "list[T(int32,(2,),[1, 2])]"),
    ("list(D.range(3))", "list[T(int64,(),0),T(int64,(),1),T(int64,(),2)]"),
    ("list(D.range(3,output_type=tf.int32))", "list[T(int32,(),0),T(int32,(),1),T(int32,(),2)]"),
    ("list(D.from_tensor_slices(np.arange(3.)).batch(2))", "list[T(float64,(2,),[0.0, 1.0]),T(float64,(1,),[2.0])]"),
    ("list(D.range(3).map(lambda x: x*2))", "list[T(int64,(),0),T(int64,(),2),T(int64,(),4)]"),
    (
        "list(D.range(3).map(lambda x: (x, 1.5)))",
        "list[tuple[T(int64,(),0),T(float32,(),1.5)],tuple[T(int64,(),1),T(float32,(),1.5)],tuple[T(int64,(),"
        "2),T(float32,(),1.5)]]",
    ),
    (
        "list(D.range(3).map(lambda x: {'a':x,'b':[x,x]}))",
        "list[{a:T(int64,(),0),b:T(int64,(2,),[0, 0])},{a:T(int64,(),1),b:T(int64,(2,),[1, 1])},{a:T(int64,"
        "(),2),b:T(int64,(2,),[2, 2])}]",
    ),
    (
        "list(D.range(3).map(lambda x: tf.cast(x,tf.float32)/2))",
        "list[T(float32,(),0.0),T(float32,(),0.5),T(float32,(),1.0)]",
    ),
    ("list(D.range(5).filter(lambda x: x>2))", "list[T(int64,(),3),T(int64,(),4)]"),
    (
        "list(D.range(3).flat_map(lambda x: D.from_tensors(x).repeat(2)))",
        "list[T(int64,(),0),T(int64,(),0),T(int64,(),1),T(int64,(),1),T(int64,(),2),T(int64,(),2)]",
    ),
    (
        "list(D.range(4).interleave(lambda x: D.from_tensors(x).repeat(2), cycle_length=2))",
        "list[T(int64,(),0),T(int64,(),1),T(int64,(),0),T(int64,(),1),T(int64,(),2),T(int64,(),3),T(int64,(),"
        "2),T(int64,(),3)]",
    ),
    ("D.range(5).reduce(np.int64(0), lambda a,b: a+b)", "T(int64,(),10)"),
    ("D.range(5).reduce(tf.constant(0,tf.int64), lambda a,b: a+b)", "T(int64,(),10)"),
    (
        "list(D.zip((D.range(2),D.range(2,4))))",
        "list[tuple[T(int64,(),0),T(int64,(),2)],tuple[T(int64,(),1),T(int64,(),3)]]",
    ),
    ("list(D.range(2).concatenate(D.range(2)))", "list[T(int64,(),0),T(int64,(),1),T(int64,(),0),T(int64,(),1)]"),
    ("list(D.range(2).enumerate())", "list[tuple[T(int64,(),0),T(int64,(),0)],tuple[T(int64,(),1),T(int64,(),1)]]"),
    (
        "list(D.range(2).enumerate(start=5))",
        "list[tuple[T(int64,(),5),T(int64,(),0)],tuple[T(int64,(),6),T(int64,(),1)]]",
    ),
    ("D.range(5).cardinality()", "T(int64,(),5)"),
    ("len(D.range(5))", "5"),
    ("D.range(5).repeat().cardinality()", "T(int64,(),-1)"),
    ("list(D.range(5).take(2))", "list[T(int64,(),0),T(int64,(),1)]"),
    ("list(D.range(5).skip(3))", "list[T(int64,(),3),T(int64,(),4)]"),
    ("list(D.range(5).batch(2,drop_remainder=True))", "list[T(int64,(2,),[0, 1]),T(int64,(2,),[2, 3])]"),
    ("list(D.range(4).batch(2).unbatch())", "list[T(int64,(),0),T(int64,(),1),T(int64,(),2),T(int64,(),3)]"),
    ("list(D.range(4).window(2).map(lambda w: w))", "list[DS,DS]"),
    ("list(D.range(4).window(2).flat_map(lambda w: w.batch(2)))", "list[T(int64,(2,),[0, 1]),T(int64,(2,),[2, 3])]"),
    ("list(D.from_tensor_slices([[1,2],[3,4]]).padded_batch(2))", "list[T(int32,(2, 2),[[1, 2], [3, 4]])]"),
    (
        "list(D.range(3).map(lambda x: D.range(x+1)).flat_map(lambda d: d))",
        "list[T(int64,(),0),T(int64,(),0),T(int64,(),1),T(int64,(),0),T(int64,(),1),T(int64,(),2)]",
    ),
    ("list(D.range(3).as_numpy_iterator())", "list[N(int64,0),N(int64,1),N(int64,2)]"),
    ("list(D.range(2).scan(np.int64(0), lambda st,x: (st+x, st)))", "list[T(int64,(),0),T(int64,(),0)]"),
    (
        "list(D.from_generator(lambda: [1,2], output_signature=tf.TensorSpec([],tf.int32)))",
        "list[T(int32,(),1),T(int32,(),2)]",
    ),
    (
        "list(D.from_generator(lambda: [(1,2.5)], output_types=(tf.int64,tf.float32)))",
        "list[tuple[T(int64,(),1),T(float32,(),2.5)]]",
    ),
    (
        "list(D.from_generator(lambda n: range(n), args=(3,), output_signature=tf.TensorSpec([],tf.int64)))",
        "list[T(int64,(),0),T(int64,(),1),T(int64,(),2)]",
    ),
    ("list(D.range(6).shard(3,1))", "list[T(int64,(),1),T(int64,(),4)]"),
    ("list(D.range(3).apply(lambda d: d.batch(2)))", "list[T(int64,(2,),[0, 1]),T(int64,(1,),[2])]"),
    ("next(iter(D.range(3))).dtype.name", "'int64'"),
    ("iter(D.range(1)).get_next()", "T(int64,(),0)"),
    ("iter(D.range(1)).get_next_as_optional().get_value()", "T(int64,(),0)"),
    ("D.range(1).get_single_element()", "T(int64,(),0)"),
    ("list(D.from_tensor_slices(['a','b']).batch(2))", "list[T(string,(2,),[b'a', b'b'])]"),
    ("list(D.from_tensor_slices([b'a'])) ", "list[T(string,(),b'a')]"),
    ("list(D.from_tensor_slices(tf.constant([1,2])))", "list[T(int32,(),1),T(int32,(),2)]"),
    ("list(D.from_tensor_slices([True,False]))", "list[T(bool,(),True),T(bool,(),False)]"),
    (
        "list(D.choose_from_datasets([D.range(2),D.range(10,12)], D.from_tensor_slices(np.array([1,0,1,0]))))",
        "list[T(int64,(),10),T(int64,(),0),T(int64,(),11),T(int64,(),1)]",
    ),
    ("list(D.range(3).map(lambda x: tf.identity('t')))", "list[T(string,(),b't'),T(string,(),b't'),T(string,(),b't')]"),
    ("list(D.range(3).take_while(lambda x: x<2))", "list[T(int64,(),0),T(int64,(),1)]"),
    ("list(D.from_tensor_slices([1,1,2]).unique())", "list[T(int32,(),1),T(int32,(),2)]"),
    ("list(D.range(3).batch(2).map(lambda x: x[0]))", "list[T(int64,(),0),T(int64,(),2)]"),
    (
        "list(D.range(2).map(lambda x: (x,(x,{'k':x}))))",
        "list[tuple[T(int64,(),0),tuple[T(int64,(),0),{k:T(int64,(),0)}]],tuple[T(int64,(),1),tuple[T(int64,"
        "(),1),{k:T(int64,(),1)}]]]",
    ),
    ("tf.data.experimental.cardinality(D.range(3))", "T(int64,(),3)"),
    ("tf.data.AUTOTUNE", "-1"),
    ("tf.data.INFINITE_CARDINALITY", "-1"),
    ("tf.data.experimental.AutoShardPolicy.DATA", "<AutoShardPolicy.DATA: 2>"),
    ("tf.data.Options().deterministic", "None"),
    ("D.range(3).batch(2).element_spec.dtype.name", "'int64'"),
]

STRATEGIES = [
    (
        "list(s.experimental_distribute_dataset(D.range(5).batch(4)))",
        "list[PerReplica['T(int64,(2,),[0, 1])', 'T(int64,(2,),[2, 3])'],PerReplica['T(int64,(1,),[4])',"
        " 'T(int64,(0,),[])']]",
    ),
    (
        "list(s.experimental_distribute_dataset(D.from_tensor_slices(({'a':[1.,2.]},[1,2])).batch(2)))",
        "list[tuple[{a:PerReplica['T(float32,(1,),[1.0])', 'T(float32,(1,),[2.0])']},PerReplica['T(int32,(1,"
        "),[1])', 'T(int32,(1,),[2])']]]",
    ),
    (
        "list(s.distribute_datasets_from_function(lambda c: D.range(4).batch(2)))",
        "list[PerReplica['T(int64,(2,),[0, 1])', 'T(int64,(2,),[2, 3])']]",
    ),
    ("s.run(lambda x: x+1, args=(1,))", "2"),
    ("s.run(lambda x: x+1, args=(tf.constant(1),))", "PerReplica['T(int32,(),2)', 'T(int32,(),2)']"),
    (
        "tf.function(lambda: (1,[2.5],{'a':'x'},None))()",
        "tuple[T(int32,(),1),list[T(float32,(),2.5)],{a:T(string,(),b'x')},None]",
    ),
    ("tf.function(lambda x: x)(3)", "T(int32,(),3)"),
    ("tf.function(lambda x: x)(np.arange(2.))", "T(float64,(2,),[0.0, 1.0])"),
    (
        "tf.function(lambda: s.run(lambda: tf.constant([1.])))()",
        "PerReplica['T(float32,(1,),[1.0])', 'T(float32,(1,),[1.0])']",
    ),
    ("s.reduce('SUM', s.run(lambda: tf.constant(2)), axis=None)", "T(int32,(),4)"),
    ("s.reduce('MEAN', s.run(lambda: tf.constant([1.,2.])), axis=0)", "T(float32,(),1.5)"),
    ("s.reduce('MEAN', 3.0, axis=None)", "3.0"),
    ("s.gather(s.run(lambda: tf.constant([1.,2.])),axis=0)", "T(float32,(4,),[1.0, 2.0, 1.0, 2.0])"),
    (
        "s.run(lambda: get_replica_context().all_reduce('MEAN', tf.constant([1,2])))",
        "PerReplica['T(float64,(2,),[1.0, 2.0])', 'T(float64,(2,),[1.0, 2.0])']",
    ),
    ("s.experimental_local_results(s.run(lambda: tf.constant(1)))", "tuple[T(int32,(),1),T(int32,(),1)]"),
    (
        "s.experimental_distribute_values_from_function(lambda c: np.float64(1))",
        "PerReplica['N(float64,1.0)', 'N(float64,1.0)']",
    ),
    (
        "s.run(lambda: get_replica_context().merge_call(lambda st,x: st.reduce('SUM',x,axis=None),"
        " args=(get_replica_context().replica_id_in_sync_group,)))",
        "T(int32,(),1)",
    ),
    ("tf.distribute.ReduceOp.SUM", "<ReduceOp.SUM: 'SUM'>"),
    ("tf.compat.v1.distribute.get_loss_reduction()", "<ReduceOp.SUM: 'SUM'>"),
    ("hasattr(tf.compat.v1.distribute.MirroredStrategy(['CPU:0']),'gather')", "False"),
    ("tf.compat.v1.distribute.MirroredStrategy(['CPU:0']).reduce('SUM',tf.constant(1))", "T(int32,(),1)"),
    ("isinstance(s,tf.distribute.Strategy)", "True"),
    ("isinstance(tf.compat.v1.distribute.OneDeviceStrategy('CPU:0'),tf.compat.v1.distribute.Strategy)", "True"),
    (
        "s.extended.worker_devices",
        "tuple['/job:localhost/replica:0/task:0/device:CPU:0','/job:localhost/replica:0/task:0/device:CPU:1']",
    ),
    ("s.num_replicas_in_sync", "2"),
    ("tf.distribute.get_strategy().num_replicas_in_sync", "1"),
]

VARIABLES = [
    ("tf.Variable(1)", "V(T(int32,(),1))"),
    ("tf.Variable(1.5)", "V(T(float32,(),1.5))"),
    ("tf.Variable([1,2],dtype=tf.float64)", "V(T(float64,(2,),[1.0, 2.0]))"),
    ("tf.Variable(lambda: 3.)", "V(T(float32,(),3.0))"),
    ("tf.Variable(1.).assign(2.)", "V(T(float32,(),2.0))"),
    ("tf.Variable([1.,2.]).assign_add([1.,1.])", "V(T(float32,(2,),[2.0, 3.0]))"),
    ("tf.Variable(2.)*3", "T(float32,(),6.0)"),
    ("3*tf.Variable(2)", "T(int32,(),6)"),
    ("tf.Variable([1.,2.])[0]", "T(float32,(),1.0)"),
    ("tf.Variable([1.,2.])==1.0", "T(bool,(2,),[True, False])"),
    ("-tf.Variable(1.)", "T(float32,(),-1.0)"),
    ("tf.Variable(1.).value()", "T(float32,(),1.0)"),
    ("tf.Variable(1.).numpy()", "N(float32,1.0)"),
    ("tf.Variable([1.,2.]).numpy()", "N(float32,[1.0, 2.0])"),
    (
        "tf.Variable([1.,2.]).scatter_add(tf.IndexedSlices(tf.constant([5.]),tf.constant([0])))",
        "V(T(float32,(2,),[6.0, 2.0]))",
    ),
    ("tf.Variable(1, trainable=False).trainable", "False"),
    ("tf.Variable(1.,name='a').name", "'a:0'"),
    ("tf.Variable(1., True, True, None, 'b').name", "'b:0'"),
    ("tf.Variable([1,2],shape=tf.TensorSpec([2]).shape)", "V(T(int32,(2,),[1, 2]))"),
    ("tf.Variable(1.).assign(2)", "V(T(float32,(),2.0))"),
    ("tf.Variable(1).assign(2.5)", "TypeError"),
    ("tf.Variable(1.) + tf.Variable(2.)", "T(float32,(),3.0)"),
    ("tf.Variable(1.) + tf.Variable(2)", "InvalidArgumentError"),
    ("tf.Variable(1.).assign(tf.constant(2))", "ValueError"),
    ("tf.identity(tf.Variable(2.))", "T(float32,(),2.0)"),
    ("tf.cast(tf.Variable(2.5),tf.int32)", "T(int32,(),2)"),
    ("tf.is_tensor(tf.Variable(1))", "True"),
    ("tf.convert_to_tensor(tf.Variable(1.5))", "T(float32,(),1.5)"),
]

OTHERS = [
    ("tf.nest.flatten({'b':1,'a':[2,(3,)]})", "list[2,3,1]"),
    ("tf.nest.map_structure(lambda x:x+1,[1,{'a':2}])", "list[2,{a:3}]"),
    ("tf.nest.pack_sequence_as([0,(0,)],[1,2])", "list[1,tuple[2]]"),
    ("tf.nest.is_nested('a')", "False"),
    ("tf.nest.assert_same_structure([1],[2,3])", "ValueError"),
    ("tf.nest.assert_same_structure([1],(2,))", "TypeError"),
    ("tf.nest.flatten(5)", "list[5]"),
    ("tf.nest.map_structure(lambda x,y:x+y,[1],[1,2])", "ValueError"),
    ("tf.nest.pack_sequence_as([0],[1,2])", "ValueError"),
    ("tf.nest.flatten(None)", "list[None]"),
    ("tf.nest.map_structure(lambda x: x)", "ValueError"),
    ("tf.range(3)", "T(int32,(3,),[0, 1, 2])"),
    ("tf.range(1,7,2)", "T(int32,(3,),[1, 3, 5])"),
    ("tf.range(0.,1.,.25)", "T(float32,(4,),[0.0, 0.25, 0.5, 0.75])"),
    ("tf.range(3,dtype=tf.float32)", "T(float32,(3,),[0.0, 1.0, 2.0])"),
    ("tf.range(3.)", "T(float32,(3,),[0.0, 1.0, 2.0])"),
    ("tf.reshape([1,2,3,4],[2,2])", "T(int32,(2, 2),[[1, 2], [3, 4]])"),
    ("tf.reshape(tf.constant([1,2]),(-1,1))", "T(int32,(2, 1),[[1], [2]])"),
    ("tf.square(3)", "T(int32,(),9)"),
    ("tf.square([1.,2.])", "T(float32,(2,),[1.0, 4.0])"),
    ("tf.cast([1.7,-1.7],'int32')", "T(int32,(2,),[1, -1])"),
    ("tf.cast(True,tf.float32)", "T(float32,(),1.0)"),
    ("tf.is_tensor(1)", "False"),
    ("tf.constant(3,shape=[2])", "T(int32,(2,),[3, 3])"),
    ("tf.constant([1,2],shape=[3])", "TypeError"),
    ("tf.convert_to_tensor(3,dtype_hint=tf.float32)", "T(float32,(),3.0)"),
    ("tf.convert_to_tensor([tf.constant(1.),tf.constant(2.)])", "T(float32,(2,),[1.0, 2.0])"),
    ("tf.convert_to_tensor(1.5,dtype_hint=tf.int32)", "T(float32,(),1.5)"),
    ("tf.executing_eagerly()", "True"),
    ("tf.as_dtype('float32').name", "'float32'"),
    ("tf.as_dtype(float).name", "'float32'"),
    ("tf.as_dtype(np.int64).name", "'int64'"),
    ("tf.as_dtype(int).name", "TypeError"),
    ("tf.as_dtype(bool).name", "'bool'"),
    ("tf.config.list_physical_devices()", "list[PhysicalDevice['/physical_device:CPU:0','CPU']]"),
    ("tf.config.list_physical_devices('GPU')", "list[]"),
    ("tf.config.list_logical_devices('GPU')", "list[]"),
    ("tf.config.get_logical_device_configuration('x')", "ValueError"),
    ("tf.config.LogicalDeviceConfiguration()", "LogicalDeviceConfiguration[None,None,None]"),
    ("tf.config.LogicalDevice('a','b')", "LogicalDevice['a','b']"),
    ("tf.TensorSpec([2]).dtype.name", "'float32'"),
    ("tf.TensorSpec([None,2],tf.int32).shape[1]", "2"),
]


def answers(expression: str, s: Any = None) -> list[str]:
    """What an expression gives, or the names of the classes of its error."""
    names = {"tf": tf, "np": np, "D": D, "s": s, "get_replica_context": tf.distribute.get_replica_context}
    try:
        return [shown(eval(expression, names))]
    except Exception as error:
        return [base.__name__ for base in type(error).__mro__]


@pytest.mark.parametrize(("expression", "answer"), DATASETS)
def test_datasets_answer_as_tensorflow_s(expression, answer):
    assert answer in answers(expression)


@pytest.mark.parametrize(("expression", "answer"), STRATEGIES)
def test_strategies_answer_as_tensorflow_s(expression, answer):
    assert answer in answers(expression, tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]))


@pytest.mark.parametrize(("expression", "answer"), VARIABLES)
def test_variables_answer_as_tensorflow_s(expression, answer):
    assert answer in answers(expression)


@pytest.mark.parametrize(("expression", "answer"), OTHERS)
def test_other_functions_answer_as_tensorflow_s(expression, answer):
    assert answer in answers(expression)
