//! Nothing: this package exists only so that cargo fetches and builds the peers.
