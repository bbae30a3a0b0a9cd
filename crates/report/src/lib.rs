//! Tables, CSV, JSON, SVG and HTML from plain rows; knows no domain.
