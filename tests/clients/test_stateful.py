"""zarr-python's own state machines: any order of what can be done to a store, against a model that is right.

They draw the same each time, and so few steps that they end soon. Where a machine leaves a step out because a client or a
backend cannot do it, a comment gives the reason.
"""

import base64

import hypothesis
import obstore
import pytest
import zarr.storage
from hypothesis import strategies
from hypothesis.stateful import precondition, rule, run_state_machine_as_test
from zarr.abc.store import RangeByteRequest
from zarr.core.buffer import cpu, default_buffer_prototype
from zarr.core.sync import sync
from zarr.testing.stateful import ZarrHierarchyStateMachine, ZarrStoreStateMachine
from zarr.testing.strategies import keys

import clients
from zarrd_store import ZarrdStore

CLIENTS = {
    "zarr-python + obstore (patched)": lambda server, mount: clients.WRITERS["obstore (patched)"](server.root(mount)),
    "zarr-python + all routes": lambda server, mount: ZarrdStore(server.base, mount),
}

pytestmark = pytest.mark.filterwarnings("ignore")


def bounded(examples):
    return hypothesis.settings(
        max_examples=examples,
        stateful_step_count=12,
        # What fails is not made smaller: it is a dozen steps, and that takes its time.
        phases=[hypothesis.Phase.generate],
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )


def with_each_client(test):
    each = [
        pytest.param(make, id=name, marks=pytest.mark.client(name, "read", "write", "list"))
        for name, make in CLIENTS.items()
    ]
    return pytest.mark.parametrize("make", each)(test)


@with_each_client
def test_a_hierarchy_matches_its_model_after_any_operations(server, empty, make):
    store = make(server, empty)
    run_state_machine_as_test(lambda: ZarrHierarchyStateMachine(store), settings=bounded(6))


class Keys(ZarrStoreStateMachine):
    """The machine, for a file system too."""

    is_file_system = False

    @rule(key=keys(), data=strategies.binary(max_size=100))
    def set(self, key, data):
        self.assume_it_can_be(key)
        super().set(key, data)

    def assume_it_can_be(self, key):
        """A file is no directory at the same time."""
        if self.is_file_system:
            others = [other for other in self.model if other != key]
            hypothesis.assume(not any(f"{a}/".startswith(f"{b}/") for o in others for a, b in [(o, key), (key, o)]))


class KeysOfObstore(Keys):
    """Without parts that are asked for: obstore raises an error for one behind the end of a value."""

    get_partial_values = None


@pytest.mark.client("zarr-python + obstore", "read")
def test_obstore_fails_on_a_part_behind_the_end(server, empty):
    store = CLIENTS["zarr-python + obstore (patched)"](server, empty)
    sync(store.set("key", cpu.Buffer.from_bytes(b"1234")))
    prototype = default_buffer_prototype()
    (part,) = sync(store.get_partial_values(prototype, [("key", RangeByteRequest(2, 9))]))
    assert part.to_bytes() == b"34"
    with pytest.raises(obstore.exceptions.BaseError, match="416"):
        sync(store.get_partial_values(prototype, [("key", RangeByteRequest(4, 9))]))


class KeysOfZarrd(Keys):
    """With what the server offers and zarr-python has no word for."""

    @rule(key=keys(), offset=strategies.integers(0, 50), data=strategies.binary(min_size=1, max_size=50))
    def set_part(self, key, offset, data):
        self.assume_it_can_be(key)
        sync(self.store.store.set_part(key, offset, data))
        self.patch(key, offset, data)

    @rule(data=strategies.data())
    def set_parts(self, data):
        names = strategies.one_of(keys(), *([strategies.sampled_from(sorted(self.model))] if self.model else []))
        part = strategies.tuples(names, strategies.integers(0, 50), strategies.binary(min_size=1, max_size=50))
        parts = []
        for key, offset, content in data.draw(strategies.lists(part, min_size=1, max_size=5)):
            self.assume_it_can_be(key)
            self.patch(key, offset, content)
            parts.append({"key": key, "offset": offset, "base64": base64.b64encode(content).decode()})
        sync(self.store.store.set_parts(parts))

    def patch(self, key, offset, data):
        before = self.model[key].to_bytes() if key in self.model else b""
        after = before[:offset].ljust(offset, b"\0") + data + before[offset + len(data) :]
        self.model[key] = cpu.Buffer.from_bytes(after)

    @rule(key=keys(), data=strategies.binary(max_size=100))
    def set_if_not_exists(self, key, data):
        self.assume_it_can_be(key)
        buffer = cpu.Buffer.from_bytes(data)
        sync(self.store.store.set_if_not_exists(key, buffer))
        self.model.setdefault(key, buffer)

    @precondition(lambda self: self.model)
    @rule(data=strategies.data())
    def delete_many(self, data):
        some = data.draw(strategies.lists(strategies.sampled_from(sorted(self.model)), min_size=1, unique=True))
        assert sync(self.store.store.delete_many([*some, "not/there"])) == len(some)
        for key in some:
            del self.model[key]


MACHINES = {zarr.storage.ObjectStore: KeysOfObstore, ZarrdStore: KeysOfZarrd}


@with_each_client
def test_keys_and_values_match_their_model_after_any_operations(server, backend, empty, make):
    store = make(server, empty)
    (machine,) = (machine for kind, machine in MACHINES.items() if isinstance(store, kind))

    def started():
        running = machine(store)
        running.is_file_system = backend == "local"
        return running

    run_state_machine_as_test(started, settings=bounded(6))
