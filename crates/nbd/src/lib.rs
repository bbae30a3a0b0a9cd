//! The NBD protocol: one sans-IO codec, a server and a client.
