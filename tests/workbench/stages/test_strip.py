"""The stages as a timeline: figures and diffs for the script, and a picture where there is none."""

from __future__ import annotations

import base64
import re
from xml.etree import ElementTree

from workbench.stages.strip import Strip
from workbench.stages.strip_picture import strip_image


def test_it_says_what_each_stage_did(pipeline):
    pipeline.run(until="fly-layout-lowering")
    stages = Strip(pipeline).meta()["stages"]
    assert [stage["number"] for stage in stages] == list(range(1, len(pipeline) + 1))
    for shown, stage in zip(stages, pipeline, strict=True):
        assert shown["state"] == stage.state
        assert (shown["time"] is None) == (stage.state != "done")
        assert shown["isEmpty"] == (stage.state != "done" or not stage.changed)


def test_the_rows_of_a_stage_are_its_two_texts(pipeline):
    pipeline.run()
    strip = Strip(pipeline)
    origins = strip.meta()["origins"]
    for index, stage in enumerate(pipeline):
        if not stage.changed:
            continue
        rows = strip.content(index)["rows"]
        assert len([row for row in rows if row[1]]) == len(stage.before.splitlines())
        assert len([row for row in rows if row[2]]) == len(stage.after.splitlines())
        assert {row[5] for row in rows} <= set(range(-1, len(origins)))
    assert any(row[5] >= 0 for row in strip.content(2)["rows"])


def test_a_stage_that_has_not_run_has_no_diff(pipeline):
    assert Strip(pipeline).content(3) == {"rows": []}


def test_the_picture_has_the_numbers_of_all_stages(pipeline):
    pipeline.run()
    html = strip_image(pipeline)
    (address,) = re.findall(r"base64,([^\"]+)", html)
    texts = [
        text.text for text in ElementTree.fromstring(base64.b64decode(address)).iter() if text.tag.endswith("text")
    ]
    assert {str(number) for number in range(1, len(pipeline) + 1)} <= set(texts)
    assert "fly-layout-lowering: +" in html  # in words
