//! What an execution sees: inputs, outputs, context; and the loop of a worker process
