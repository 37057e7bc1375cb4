"""What tests in Python share: random numbers and files, written apart from ours."""
import json, struct
import numpy as np


def philox(counter, key):  # Philox4x32-10, Salmon et al. 2011
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & 0xffffffff, (a >> 32) ^ c[3] ^ k[1], a & 0xffffffff]
        k = [(k[0] + 0x9E3779B9) & 0xffffffff, (k[1] + 0xBB67AE85) & 0xffffffff]
    return c


def read_file(path):  # name -> (type, shape, bytes) of a safetensors file
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    return {name: (t["dtype"], t["shape"], data[8 + size + t["data_offsets"][0]:8 + size + t["data_offsets"][1]])
            for name, t in json.loads(data[8:8 + size]).items() if name != "__metadata__"}


def read_safetensors(path, number=np.float32):  # of one in float32
    return {name: np.frombuffer(data, "<f4").reshape(shape).astype(number)
            for name, (kind, shape, data) in read_file(path).items()}
