"""The contract between a model and the runtime: loops, specs, controls, blocks, instances.

It imports no family and no service.
"""
