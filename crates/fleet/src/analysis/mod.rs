//! A fleet's hours in one pass, as summaries that merge; tables and figures from them.
