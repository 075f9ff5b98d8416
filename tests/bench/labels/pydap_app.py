"""The server of pydap as a WSGI application, over the variables of the NetCDF file that `PYDAP_FILE` names, in memory.

In memory, because its reader of such files (3.5.9) fails for a part of a variable. So it reads nothing, which is in its favour.
"""

import os

import netCDF4
from pydap.handlers.lib import BaseHandler
from pydap.model import BaseType, DatasetType


def dataset(path):
    found = DatasetType("era5")
    with netCDF4.Dataset(path) as file:
        file.set_auto_maskandscale(False)
        for name, variable in file.variables.items():
            found[name] = BaseType(name, variable[...], dims=variable.dimensions)
    return found


application = BaseHandler(dataset(os.environ["PYDAP_FILE"]))
