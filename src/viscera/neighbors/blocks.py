"""C for cpu loops over neighbours, 16 at once: who may be near a cell, as blocks of the sorted arrays, listed once.

The particles of one cell have the same nine rows of three cells around them (three in 2D). Going through rows within
rows for each particle misleads the processor's guess of where a loop ends, nine times a particle. Here the rows of a
cell become one list of blocks of up to 16 places, and every particle of the cell goes through the same list: water's
step takes a sixth less. Leaving out rows and cells beyond the radius costs more in wrong guesses than it saves.

A text that uses it has `grid` (a `GridView`) and goes through particles in sorted order:

    CELL
    BLOCKS
    for each particle, its cell being cx = CELL(…, grid.cells_x), cy, cz {
        OPEN_BLOCKS
            what is done with places t to t + 15, of which those from `end` on are not neighbours
        CLOSE_BLOCKS
    }

A crowd that has more blocks around it than the list holds is gone through in parts. `continue` skips a block.

Half of the blocks hold nobody within the radius, which a branch guesses badly. The first loop of a step can note which
do, without a branch (`note_hit`), and afterwards `HITS` is what to keep of the particle, a bit per block. Later loops
over the same places open with `open_hits(kept)` and go through those alone: water's forces take 40 % less.
"""

from __future__ import annotations

from viscera.native import fill

MOST = 64
"""Blocks that a list holds: a thousand particles around a cell."""

CELL = """
#define CELL(t, n) ((t) > 0.0f ? (int)((t) < (float)((n) - 1) ? (t) : (float)((n) - 1)) : 0)
"""
"""`cells.cell_of` along one axis: t in cells from the grid's lower corner, n cells along it. For cpu and cuda."""

BLOCKS = fill(
    """
int from_[$most], to_[$most], blocks_ = 0, row_ = 0, next_ = -1;
int listed_x = -1, listed_y = -1, listed_z = -1;
bool listed_ = false;  // whether the list holds all blocks around that cell
""",
    most=MOST,
)

_LIST = """
    if (cx != listed_x || cy != listed_y || cz != listed_z) {
        listed_x = cx; listed_y = cy; listed_z = cz;
        listed_ = false;
    }
    bool more_ = !listed_;
    if (more_) { row_ = 0; next_ = -1; }
    do {
        if (more_) {
            const bool anew = row_ == 0 && next_ < 0;
            const int left = cx > 0 ? cx - 1 : 0, right = cx + 1 < grid.cells_x ? cx + 1 : cx;
            for (blocks_ = 0; row_ < grid.rows; ++row_, next_ = -1) {
                const int ry = cy + row_ % 3 - 1, rz = cz + row_ / 3 - grid.layer;
                if (ry < 0 || ry >= grid.cells_y || rz < 0 || rz >= grid.cells_z) continue;
                const int base = (rz * grid.cells_y + ry) * grid.cells_x;
                const int begin = grid.cell_start.data[base + left], stop = grid.cell_start.data[base + right + 1];
                if (next_ < begin) next_ = begin;
                for (; next_ < stop && blocks_ < $most; next_ += 16, ++blocks_) {
                    from_[blocks_] = next_;
                    to_[blocks_] = stop;
                }
                if (next_ < stop) break;
            }
            more_ = row_ < grid.rows;
            listed_ = anew && !more_;
        }
"""

OPEN_BLOCKS = fill(
    _LIST
    + """
        for (int block_ = 0; block_ < blocks_; ++block_) {
            const int t = from_[block_], end = to_[block_];
""",
    most=MOST,
)

_OPEN_HITS = (
    _LIST
    + """
        unsigned long long todo_ = blocks_ < $most ? (1ULL << blocks_) - 1ULL : ~0ULL;
        if (listed_) todo_ &= $kept;
        for (; todo_; todo_ &= todo_ - 1ULL) {
            const int block_ = __builtin_ctzll(todo_), t = from_[block_], end = to_[block_];
"""
)

CLOSE_BLOCKS = """
        }
    } while (more_);
"""

HITS = "(listed_ ? hits_ : ~0ULL)"
"""All, where blocks are not listed at once."""


def note_hit(found: str) -> str:
    """Wants `unsigned long long hits_ = 0;` before the blocks; `found` says whether this one holds somebody near."""
    return fill("hits_ |= (unsigned long long)($found) << block_;", found=found)


def open_hits(kept: str) -> str:
    """As `OPEN_BLOCKS`, through the blocks whose bit is set in `kept`."""
    return fill(_OPEN_HITS, most=MOST, kept=kept)
