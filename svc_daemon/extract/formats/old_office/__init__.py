"""Office files from before 2007: compound files and RTF.

They are read by hand, as is OpenDocument (`extract.formats.odf`), because libraries find less. On public files of other
projects' test suites, against the text that LibreOffice saves (`doc`, `rtf`, `ppt`) or that is in the XML
(OpenDocument), the share of distinct words found was:

    format                          files   ours    kreuzberg 4.10   xberg 1.3.9
    doc                             186     0.896   0.830            0.872
    ppt                             50      0.909   0.872            0.870
    rtf                             103     0.984   0.931            0.954
    odt                             177     0.967   0.926            0.950
    ods                             34      0.986   0.825            0.825
    odp                             25      0.958   0                0.849
    median ms for a doc, a ppt              1, 1    13, 12           33, 42
    megabytes to install                    0       76               130

What is lacking is mostly in files that are of another format (text, XML or WordPerfect named `.doc`) or broken on
purpose, and in numbers of notes that LibreOffice glues to words. The two libraries ran in a forked child within its
limits, xberg only as long as its parent had not used it.
"""
