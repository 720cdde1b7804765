//! Ensembles of multilayer perceptrons on LibTorch
