mod behaviour;
mod model;
