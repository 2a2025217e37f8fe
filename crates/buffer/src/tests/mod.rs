mod model;
mod shuttle;
