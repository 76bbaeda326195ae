"""Is this evidence, is it enough, does it support the claim? Local and model judges behind one protocol."""
