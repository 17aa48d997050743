"""Public names of TensorFlow 2.21 by namespace, to tell absent names from misspelt names."""

from __future__ import annotations

# Public names by namespace, listed by `dir` in TensorFlow 2.21.0; for tf.keras, the names in `_tf_keras/keras` of Keras
# 3.
TENSORFLOW_NAMES: dict[str, frozenset[str]] = {
    name: frozenset(names.split())
    for name, names in {
        "tf": """
            AggregationMethod Assert CriticalSection DType DeviceSpec GradientTape Graph IndexedSlices
            IndexedSlicesSpec Module NoneTensorSpec Operation OptionalSpec RaggedTensor RaggedTensorSpec
            RegisterGradient SparseTensor SparseTensorSpec Tensor TensorArray TensorArraySpec TensorShape TensorSpec
            TypeSpec UnconnectedGradients Variable VariableAggregation VariableSynchronization abs acos acosh add
            add_n approx_top_k argmax argmin argsort as_dtype as_string asin asinh assert_equal assert_greater
            assert_less assert_rank atan atan2 atanh audio autodiff autograph batch_to_space bfloat16 bitcast
            bitwise bool boolean_mask broadcast_dynamic_shape broadcast_static_shape broadcast_to case cast
            check_pinned clip_by_global_norm clip_by_norm clip_by_value compat complex complex128 complex64 concat
            cond config constant constant_initializer control_dependencies conv conv2d_backprop_filter_v2
            conv2d_backprop_input_v2 convert_to_tensor cos cosh cumsum custom_gradient data debugging device
            distribute divide double dtensor dtypes dynamic_partition dynamic_stitch edit_distance eig eigvals
            einsum ensure_shape equal errors executing_eagerly exp expand_dims experimental extract_volume_patches
            eye feature_column fftnd fill fingerprint float16 float32 float64 floor foldl foldr function gather
            gather_nd get_current_name_scope get_logger get_static_value grad_pass_through gradients graph_util
            greater greater_equal group guarantee_const half hessians histogram_fixed_width
            histogram_fixed_width_bins identity identity_n ifftnd image import_graph_def init_scope initializers
            inside_function int16 int32 int64 int8 io irfftnd is_symbolic_tensor is_tensor keras less less_equal
            linalg linspace lite load_library load_op_library logical_and logical_not logical_or lookup losses
            make_ndarray make_tensor_proto map_fn math matmul matrix_square_root maximum meshgrid metrics minimum
            mlir multiply name_scope negative nest newaxis nn no_gradient no_op nondifferentiable_batch_function
            norm not_equal numpy_function one_hot ones ones_initializer ones_like optimizers pad parallel_stack pow
            print profiler py_function qint16 qint32 qint8 quantization queue quint16 quint8 ragged
            ragged_fill_empty_rows ragged_fill_empty_rows_grad random random_index_shuffle random_normal_initializer
            random_uniform_initializer range rank raw_ops realdiv recompute_grad reduce_all reduce_any
            reduce_logsumexp reduce_max reduce_mean reduce_min reduce_prod reduce_sum
            register_tensor_conversion_function repeat required_space_to_batch_paddings reshape resource reverse
            reverse_sequence rfftnd roll round saturate_cast saved_model scalar_mul scan scatter_nd searchsorted
            security sequence_mask sets shape shape_n sigmoid sign signal sin sinh size slice sort space_to_batch
            space_to_batch_nd sparse split sqrt square squeeze stack stop_gradient strided_slice string strings
            subtract summary switch_case sysconfig tan tanh tensor_scatter_nd_add tensor_scatter_nd_max
            tensor_scatter_nd_min tensor_scatter_nd_sub tensor_scatter_nd_update tensordot test tile timestamp tools
            tpu train transpose truediv truncatediv truncatemod tuple type_spec_from_value types uint16 uint32
            uint64 uint8 unique unique_with_counts unravel_index unstack variable_creator_scope variant
            vectorized_map version where while_loop xla zeros zeros_initializer zeros_like
        """,
        "tf.distribute": """
            CrossDeviceOps DistributedDataset DistributedIterator DistributedValues HierarchicalCopyAllReduce
            InputContext InputOptions InputReplicationMode MirroredStrategy MultiWorkerMirroredStrategy
            NcclAllReduce OneDeviceStrategy ParameterServerStrategy ReduceOp ReductionToOneDevice ReplicaContext
            RunOptions Server Strategy StrategyExtended TPUStrategy cluster_resolver coordinator experimental
            experimental_set_strategy get_replica_context get_strategy has_strategy in_cross_replica_context
        """,
        "tf.distribute.experimental": """
            CentralStorageStrategy CollectiveCommunication CollectiveHints CommunicationImplementation
            CommunicationOptions MultiWorkerMirroredStrategy ParameterServerStrategy PreemptionCheckpointHandler
            PreemptionWatcher TPUStrategy TerminationConfig ValueContext coordinator partitioners rpc
        """,
        "tf.distribute.coordinator": """
            ClusterCoordinator PerWorkerValue RemoteValue experimental_get_current_worker_index
        """,
        "tf.distribute.cluster_resolver": """
            ClusterResolver GCEClusterResolver KubernetesClusterResolver KubernetesExecutableLocation
            SimpleClusterResolver SlurmClusterResolver TFConfigClusterResolver TPUClusterResolver UnionResolver
        """,
        "tf.distribute.experimental.coordinator": """
            ClusterCoordinator PerWorkerValues RemoteValue
        """,
        "tf.distribute.experimental.partitioners": """
            FixedShardsPartitioner MaxSizePartitioner MinSizePartitioner Partitioner
        """,
        "tf.data": """
            AUTOTUNE Dataset DatasetSpec FixedLengthRecordDataset INFINITE_CARDINALITY Iterator IteratorSpec
            NumpyIterator Options TFRecordDataset TextLineDataset ThreadingOptions UNKNOWN_CARDINALITY experimental
        """,
        "tf.data.experimental": """
            AUTOTUNE AutoShardPolicy AutotuneAlgorithm AutotuneOptions Counter CsvDataset DatasetInitializer
            DistributeOptions ExternalStatePolicy INFINITE_CARDINALITY OptimizationOptions Optional RandomDataset
            Reducer SHARD_HINT ServiceOptions SqlDataset TFRecordWriter ThreadingOptions UNKNOWN_CARDINALITY
            assert_cardinality at bucket_by_sequence_length cardinality choose_from_datasets copy_to_device
            dense_to_ragged_batch dense_to_sparse_batch distributed_save enable_debug_mode enumerate_dataset
            from_list from_variant get_model_proto get_next_as_optional get_single_element get_structure
            group_by_reducer group_by_window ignore_errors index_table_from_dataset load
            make_batched_features_dataset make_csv_dataset make_saveable_from_iterator map_and_batch
            pad_to_cardinality parallel_interleave parse_example_dataset prefetch_to_device rejection_resample
            sample_from_datasets save scan service shuffle_and_repeat snapshot table_from_dataset take_while
            to_variant unbatch unique
        """,
        "tf.config": """
            LogicalDevice LogicalDeviceConfiguration PhysicalDevice experimental experimental_connect_to_cluster
            experimental_connect_to_host experimental_functions_run_eagerly experimental_run_functions_eagerly
            functions_run_eagerly get_logical_device_configuration get_soft_device_placement get_visible_devices
            list_logical_devices list_physical_devices optimizer run_functions_eagerly
            set_logical_device_configuration set_soft_device_placement set_visible_devices threading
        """,
        "tf.config.experimental": """
            ClusterDeviceFilters VirtualDeviceConfiguration disable_mlir_bridge enable_mlir_bridge
            enable_op_determinism enable_tensor_float_32_execution get_device_details get_device_policy
            get_memory_growth get_memory_info get_memory_usage get_synchronous_execution
            get_virtual_device_configuration get_visible_devices list_logical_devices list_physical_devices
            reset_memory_stats set_device_policy set_memory_growth set_synchronous_execution
            set_virtual_device_configuration set_visible_devices tensor_float_32_execution_enabled
        """,
        "tf.tpu": """
            XLAOptions experimental
        """,
        "tf.tpu.experimental": """
            DeviceAssignment DeviceOrderMode HardwareFeature TPUSystemMetadata Topology embedding
            initialize_tpu_system shutdown_tpu_system
        """,
        "tf.train": """
            BytesList Checkpoint CheckpointManager CheckpointOptions CheckpointView ClusterDef ClusterSpec
            Coordinator Example ExponentialMovingAverage Feature FeatureList FeatureLists Features FloatList
            Int64List JobDef SequenceExample ServerDef TrackableView checkpoints_iterator experimental
            get_checkpoint_state latest_checkpoint list_variables load_checkpoint load_variable
        """,
        "tf.train.experimental": """
            MaxShardSizePolicy PythonState ShardByTaskPolicy ShardableTensor ShardingCallback
        """,
        "tf.errors": """
            ABORTED ALREADY_EXISTS AbortedError AlreadyExistsError CANCELLED CancelledError DATA_LOSS
            DEADLINE_EXCEEDED DataLossError DeadlineExceededError FAILED_PRECONDITION FailedPreconditionError
            INTERNAL INVALID_ARGUMENT InternalError InvalidArgumentError NOT_FOUND NotFoundError OK OUT_OF_RANGE
            OpError OperatorNotAllowedInGraphError OutOfRangeError PERMISSION_DENIED PermissionDeniedError
            RESOURCE_EXHAUSTED ResourceExhaustedError UNAUTHENTICATED UNAVAILABLE UNIMPLEMENTED UNKNOWN
            UnauthenticatedError UnavailableError UnimplementedError UnknownError
        """,
        "tf.io": """
            FixedLenFeature FixedLenSequenceFeature RaggedFeature SparseFeature TFRecordOptions TFRecordWriter
            VarLenFeature decode_and_crop_jpeg decode_base64 decode_bmp decode_compressed decode_csv decode_gif
            decode_image decode_jpeg decode_json_example decode_jxl decode_png decode_proto decode_raw decode_webp
            deserialize_many_sparse encode_base64 encode_jpeg encode_png encode_proto extract_jpeg_shape gfile
            is_jpeg match_filenames_once matching_files parse_example parse_sequence_example parse_single_example
            parse_single_sequence_example parse_tensor read_file serialize_many_sparse serialize_sparse
            serialize_tensor write_file write_graph
        """,
        "tf.nest": """
            assert_same_structure flatten is_nested map_structure pack_sequence_as
        """,
        "tf.nn": """
            RNNCellDeviceWrapper RNNCellDropoutWrapper RNNCellResidualWrapper all_candidate_sampler
            approx_max_k approx_min_k atrous_conv2d atrous_conv2d_transpose avg_pool avg_pool1d avg_pool2d
            avg_pool3d batch_norm_with_global_normalization batch_normalization bias_add collapse_repeated
            compute_accidental_hits compute_average_loss conv1d conv1d_transpose conv2d conv2d_transpose
            conv3d conv3d_transpose conv_transpose convolution crelu ctc_beam_search_decoder
            ctc_greedy_decoder ctc_loss ctc_unique_labels depth_to_space depthwise_conv2d
            depthwise_conv2d_backprop_filter depthwise_conv2d_backprop_input dilation2d dropout elu
            embedding_lookup embedding_lookup_sparse erosion2d experimental fixed_unigram_candidate_sampler
            fractional_avg_pool fractional_max_pool gelu in_top_k isotonic_regression l2_loss l2_normalize
            leaky_relu learned_unigram_candidate_sampler local_response_normalization log_poisson_loss
            log_softmax lrn max_pool max_pool1d max_pool2d max_pool3d max_pool_with_argmax moments nce_loss
            normalize_moments pool relu relu6 safe_embedding_lookup_sparse sampled_softmax_loss
            scale_regularization_loss selu separable_conv2d sigmoid sigmoid_cross_entropy_with_logits silu
            softmax softmax_cross_entropy_with_logits softplus softsign space_to_batch space_to_depth
            sparse_softmax_cross_entropy_with_logits sufficient_statistics swish tanh top_k
            weighted_cross_entropy_with_logits weighted_moments with_space_to_batch zero_fraction
        """,
        "tf.math": """
            abs accumulate_n acos acosh add add_n angle approx_max_k approx_min_k argmax argmin asin asinh atan
            atan2 atanh bessel_i0 bessel_i0e bessel_i1 bessel_i1e betainc bincount ceil confusion_matrix conj
            cos cosh count_nonzero cumprod cumsum cumulative_logsumexp digamma divide divide_no_nan equal erf
            erfc erfcinv erfinv exp expm1 floor floordiv floormod greater greater_equal igamma igammac imag
            in_top_k invert_permutation is_finite is_inf is_nan is_non_decreasing is_strictly_increasing
            l2_normalize lbeta less less_equal lgamma log log1p log_sigmoid log_softmax logical_and logical_not
            logical_or logical_xor maximum minimum mod multiply multiply_no_nan ndtri negative nextafter
            not_equal polygamma polyval pow real reciprocal reciprocal_no_nan reduce_all reduce_any
            reduce_euclidean_norm reduce_logsumexp reduce_max reduce_mean reduce_min reduce_prod reduce_std
            reduce_sum reduce_variance rint round rsqrt scalar_mul segment_max segment_mean segment_min
            segment_prod segment_sum sigmoid sign sin sinh sobol_sample softmax softplus softsign special sqrt
            square squared_difference subtract tan tanh top_k truediv unsorted_segment_max unsorted_segment_mean
            unsorted_segment_min unsorted_segment_prod unsorted_segment_sqrt_n unsorted_segment_sum xdivy
            xlog1py xlogy zero_fraction zeta
        """,
        "tf.linalg": """
            LinearOperator LinearOperatorAdjoint LinearOperatorBlockDiag LinearOperatorBlockLowerTriangular
            LinearOperatorCirculant LinearOperatorCirculant2D LinearOperatorCirculant3D
            LinearOperatorComposition LinearOperatorDiag LinearOperatorFullMatrix LinearOperatorHouseholder
            LinearOperatorIdentity LinearOperatorInversion LinearOperatorKronecker LinearOperatorLowRankUpdate
            LinearOperatorLowerTriangular LinearOperatorPermutation LinearOperatorScaledIdentity
            LinearOperatorToeplitz LinearOperatorTridiag LinearOperatorZeros adjoint band_part
            banded_triangular_solve cholesky cholesky_solve cross det diag diag_part eig eigh eigh_tridiagonal
            eigvals eigvalsh einsum experimental expm eye global_norm inv l2_normalize logdet logm lstsq lu
            lu_matrix_inverse lu_reconstruct lu_solve matmul matrix_rank matrix_transpose matvec norm normalize
            pinv qr set_diag slogdet solve sqrtm svd tensor_diag tensor_diag_part tensordot trace
            triangular_solve tridiagonal_matmul tridiagonal_solve
        """,
        "tf.random": """
            Algorithm Generator all_candidate_sampler categorical create_rng_state experimental
            fixed_unigram_candidate_sampler fold_in gamma get_global_generator learned_unigram_candidate_sampler
            log_uniform_candidate_sampler normal poisson set_global_generator set_seed shuffle split
            stateless_binomial stateless_categorical stateless_gamma stateless_normal
            stateless_parameterized_truncated_normal stateless_poisson stateless_truncated_normal
            stateless_uniform truncated_normal uniform uniform_candidate_sampler
        """,
        "tf.keras": """
            DTypePolicy FloatDTypePolicy Function GPTQConfig Initializer Input InputSpec KerasTensor Layer Loss Metric
            Model Operation Optimizer Quantizer Regularizer RematScope Sequential StatelessScope SymbolicScope
            Variable activations applications backend callbacks config constraints datasets device distribution
            dtype_policies export initializers layers legacy losses metrics mixed_precision models name_scope ops
            optimizers preprocessing quantizers random regularizers remat tree utils version visualization wrappers
        """,
        "tf.metrics": """
            AUC Accuracy BinaryAccuracy BinaryCrossentropy BinaryIoU CategoricalAccuracy CategoricalCrossentropy
            CategoricalHinge ConcordanceCorrelation CosineSimilarity F1Score FBetaScore FalseNegatives
            FalsePositives Hinge IoU KLD KLDivergence LogCoshError MAE MAPE MSE MSLE Mean MeanAbsoluteError
            MeanAbsolutePercentageError MeanIoU MeanMetricWrapper MeanSquaredError MeanSquaredLogarithmicError
            Metric OneHotIoU OneHotMeanIoU PearsonCorrelation Poisson Precision PrecisionAtRecall R2Score Recall
            RecallAtPrecision RootMeanSquaredError SensitivityAtSpecificity SparseCategoricalAccuracy
            SparseCategoricalCrossentropy SparseTopKCategoricalAccuracy SpecificityAtSensitivity SquaredHinge
            Sum TopKCategoricalAccuracy TrueNegatives TruePositives binary_accuracy binary_crossentropy
            binary_focal_crossentropy categorical_accuracy categorical_crossentropy
            categorical_focal_crossentropy categorical_hinge concordance_correlation deserialize get hinge huber
            kld kullback_leibler_divergence logcosh mae mape mse msle pearson_correlation poisson serialize
            sparse_categorical_accuracy sparse_categorical_crossentropy sparse_top_k_categorical_accuracy
            squared_hinge top_k_categorical_accuracy
        """,
        "tf.losses": """
            BinaryCrossentropy BinaryFocalCrossentropy CTC CategoricalCrossentropy CategoricalFocalCrossentropy
            CategoricalHinge CosineSimilarity Dice Hinge Huber KLD KLDivergence LogCosh Loss MAE MAPE MSE MSLE
            MeanAbsoluteError MeanAbsolutePercentageError MeanSquaredError MeanSquaredLogarithmicError Poisson
            Reduction SparseCategoricalCrossentropy SquaredHinge Tversky binary_crossentropy
            binary_focal_crossentropy categorical_crossentropy categorical_focal_crossentropy categorical_hinge
            cosine_similarity ctc deserialize dice get hinge huber kl_divergence kld kullback_leibler_divergence
            log_cosh logcosh mae mape mean_absolute_error mean_absolute_percentage_error mean_squared_error
            mean_squared_logarithmic_error mse msle poisson serialize sparse_categorical_crossentropy squared_hinge
            tversky
        """,
        "tf.compat": """
            as_bytes as_str as_str_any as_text bytes_or_text_types complex_types dimension_at_index dimension_value
            forward_compatibility_horizon forward_compatible integral_types path_to_str real_types v1 v2
        """,
        "tf.compat.v1.distribute": """
            CrossDeviceOps HierarchicalCopyAllReduce InputContext InputReplicationMode MirroredStrategy
            NcclAllReduce OneDeviceStrategy ReduceOp ReductionToOneDevice ReplicaContext RunOptions Server Strategy
            StrategyExtended cluster_resolver experimental experimental_set_strategy get_loss_reduction
            get_replica_context get_strategy has_strategy in_cross_replica_context
        """,
        "tf.compat.v1.distribute.experimental": """
            CentralStorageStrategy CollectiveCommunication CollectiveHints CommunicationImplementation
            CommunicationOptions MultiWorkerMirroredStrategy ParameterServerStrategy TPUStrategy
        """,
        "tf.types": """
            experimental
        """,
        "tf.types.experimental": """
            AtomicFunction Callable ConcreteFunction FunctionType GenericFunction PolymorphicFunction
            SupportsTracingProtocol TensorLike TraceType distributed
        """,
        "tf.types.experimental.distributed": """
            Mirrored PerReplica
        """,
        "tf.experimental": """
            BatchableExtensionType DynamicRaggedShape ExtensionType ExtensionTypeBatchEncoder ExtensionTypeSpec
            Optional RowPartition StructuredTensor async_clear_error async_scope dispatch_for_api
            dispatch_for_binary_elementwise_apis dispatch_for_binary_elementwise_assert_apis
            dispatch_for_unary_elementwise_apis dlpack dtensor enable_strict_mode extension_type float4_e2m1fn
            float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz function_executor_type int2
            int4 numpy register_filesystem_plugin tensorrt uint2 uint4 unregister_dispatch_for
        """,
    }.items()
}
