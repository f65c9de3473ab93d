"""The list of models, for people."""

from reverie.models.catalogue import CatalogueEntry, as_table, catalogue


def test_the_embedded_model_is_listed_without_loading_it() -> None:
    (pocket,) = (entry for entry in catalogue(load=False) if entry.name == "pocket")
    assert pocket.programs[0] == "world"
    assert pocket.loops[:2] == ("world_model", "ar_decode")
    assert "actions" in pocket.capabilities
    assert (pocket.memory, pocket.fault) == ("?", "")


def test_loading_tells_the_memory_of_a_session() -> None:
    (pocket,) = (entry for entry in catalogue(load=True) if entry.name == "pocket")
    assert pocket.memory.endswith(" MiB")


def test_the_table_is_aligned_and_faults_are_told_below() -> None:
    entries = [
        CatalogueEntry("a", title="Short", programs=("world",)),
        CatalogueEntry("longer", title="A longer title", fault="no weights"),
    ]
    head, first, second, fault = as_table(entries).splitlines()
    assert head.index("TITLE") == first.index("Short") == second.index("A longer")
    assert fault == "longer cannot be served: no weights"
