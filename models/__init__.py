"""What model work is: specs, the loop contract, instances, caches and guidance; a folder a family.

Start at `loop.py`. This room never imports the ones that schedule, assign or serve.
"""
