"""A made-up shop: product titles and descriptions under a category tree with a few bad ideas in it.

Departments group what belongs together. 'Gifts', 'Clearance', 'Seasonal' and 'New in' do not: a
shop adds such categories to sell, and a dog bowl in 'Gifts' still reads like something for dogs.
All names, brands and texts are invented.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from taxofit.datasets.dataset import Dataset
from taxofit.errors import DataError
from taxofit.taxonomy import PATH_SEPARATOR, Taxonomy

if TYPE_CHECKING:
    from os import PathLike

    from numpy.typing import NDArray

__all__ = ["ShopCatalogue", "make_shop_catalogue"]

INCONSISTENT = ("Gifts", "Clearance", "Seasonal", "New in")

# One product group a line: department | kind of product | category | words of its own.
# Gloves of one department read much like gloves of another, and like other things of their own.
# Each bad category has at most one group of a department and of a kind, so neither tells what
# belongs there.
PRODUCT_GROUPS = """
Home & Kitchen | bowls | Home & Kitchen > Cooking > Mixing bowls | mixing, salad, whisking
Home & Kitchen | mats | Home & Kitchen > Table > Place mats | place, dining, woven
Home & Kitchen | bottles | Home & Kitchen > Table > Oil bottles | oil, vinegar, pouring
Home & Kitchen | covers | Home & Kitchen > Cooking > Dish covers | dish, splatter, bowl
Home & Kitchen | lights | Home & Kitchen > Table > Candle lights | candle, flameless, tealight
Home & Kitchen | gloves | Gifts > Gift oven gloves | oven, quilted, heat proof
Home & Kitchen | boxes | Clearance > Clearance food boxes | lunch, airtight, freezer
Home & Kitchen | brushes | Seasonal > Barbecue brushes | barbecue, grill, basting
Garden | bowls | Garden > Wildlife > Bird bowls | bird, bath, feeding
Garden | boxes | Garden > Wildlife > Nest boxes | nest, bee, hedgehog
Garden | bags | Garden > Growing > Grow bags | grow, potato, compost
Garden | bottles | Garden > Growing > Spray bottles | spray, misting, seedling
Garden | brushes | Garden > Patio > Patio brushes | patio, weed, moss
Garden | mats | Garden > Patio > Outdoor mats | decking, picnic, terrace
Garden | lights | Clearance > Clearance solar lights | solar, path, stake
Garden | covers | Seasonal > Furniture covers | bench, parasol, sun lounger
Garden | gloves | New in > Thorn gloves | thorn, pruning, rose
Pets | gloves | Pets > Grooming > Grooming gloves | grooming, deshedding, fur
Pets | brushes | Pets > Grooming > Pet brushes | slicker, coat, undercoat
Pets | bags | Pets > Travel > Pet carriers | carrier, cabin, mesh
Pets | bottles | Pets > Travel > Pet water bottles | drinking, walking, trough
Pets | mats | Pets > Sleeping > Pet mats | crate, kennel, cooling
Pets | covers | Pets > Sleeping > Pet bed covers | bed, cushion, sofa
Pets | bowls | Gifts > Gift dog bowls | slow feeder, engraved, double
Pets | lights | New in > Collar lights | collar, clip-on, night walk
Clothing | covers | Clothing > Clothes care > Garment covers | garment, suit, coat
Clothing | brushes | Clothing > Clothes care > Clothes brushes | lint, suede, fabric
Clothing | boxes | Clothing > Clothes care > Shoe boxes | shoe, jewellery, hat
Clothing | mats | Clothing > Shoes > Insoles and boot mats | boot, insole, drip
Clothing | lights | Clothing > Shoes > Light-up laces | laces, party, glow
Clothing | bags | Gifts > Gift handbags | handbag, evening, shoulder
Clothing | gloves | Seasonal > Winter gloves | knitted, touch screen, fleece
Sports | gloves | Sports > Cycling > Cycling gloves | cycling, padded, half finger
Sports | lights | Sports > Cycling > Bike lights | bike, handlebar, rear
Sports | covers | Sports > Cycling > Bike covers | saddle, bicycle, rain
Sports | boxes | Sports > Water sports > Tackle boxes | tackle, fishing, bait
Sports | brushes | Sports > Water sports > Board brushes | surf wax, boat, hull
Sports | bottles | Gifts > Gift sports bottles | steel, insulated, shaker
Sports | mats | Clearance > Clearance exercise mats | exercise, yoga, stretching
Sports | bags | Sports > Water sports > Dry bags | dry, kayak, swimming
Baby | mats | Baby > Changing > Changing mats | changing, wipe clean, play
Baby | boxes | Baby > Changing > Nappy boxes | nappy, wipes, nursery
Baby | brushes | Baby > Bathing > Baby brushes | hair, cradle cap, bath
Baby | gloves | Baby > Bathing > Bath mitts | wash, flannel, scratch
Baby | lights | Baby > Sleeping > Night lights | night, projector, lullaby
Baby | covers | Baby > Sleeping > Cot covers | cot, pram, moses basket
Baby | bowls | Clearance > Clearance weaning bowls | weaning, suction, spoon
Baby | bottles | New in > Self-heating bottles | milk, teat, formula
Office | bags | Office > Laptops > Laptop bags | laptop, messenger, briefcase
Office | covers | Office > Laptops > Keyboard covers | keyboard, screen, dust
Office | boxes | Office > Filing > Archive boxes | archive, file, document
Office | bowls | Office > Filing > Clip bowls | paper clip, pin, coin
Office | lights | Gifts > Gift desk lights | reading, clamp, swivel
Office | mats | New in > Charging desk mats | charging, mouse, writing
Car | gloves | Car > Cleaning > Wash mitts | wash, polishing, chenille
Car | bottles | Car > Cleaning > Cleaning bottles | shampoo, glass, trigger
Car | lights | Car > Interior > Interior lights | dashboard, boot, footwell
Car | boxes | Car > Interior > Boot boxes | boot, trunk, roof
Car | mats | Car > Interior > Floor mats | floor, footwell, rubber
Car | brushes | Clearance > Clearance wheel brushes | wheel, rim, spoke
Car | covers | New in > Seat covers | seat, headrest, backrest
Car | bags | Seasonal > Roof bags | roof, ski, luggage
"""

KIND_WORDS = {
    "gloves": "gloves, pair of gloves, mitts, glove set; non-slip palm, soft lining, "
    "one size, snug cuff",
    "bags": "bag, holdall, tote, carry bag; zip pocket, shoulder strap, 20 litre, folds flat",
    "brushes": "brush, brush set, scrubber, bristle brush; stiff bristles, long handle, "
    "rinses clean, soft grip",
    "mats": "mat, pad, mat set, roll-up mat; non-slip backing, wipe clean, 60 x 40 cm, 6 mm thick",
    "lights": "light, lamp, led light, light set; usb rechargeable, 3 brightness levels, "
    "warm white, 200 lumen",
    "covers": "cover, protective cover, cover set, fitted cover; elasticated edge, "
    "machine washable, waterproof, fits most sizes",
    "bowls": "bowl, bowl set, dish, deep bowl; dishwasher safe, stackable, 18 cm, chip resistant",
    "bottles": "bottle, flask, bottle set, squeeze bottle; leak proof, 500 ml, wide neck, bpa free",
    "boxes": "box, storage box, box with lid, container; stackable, clip lid, with label, 5 litre",
}
DEPARTMENT_WORDS = {
    "Home & Kitchen": "kitchen, cooking, dining, baking, worktop, dinner, home cooks",
    "Garden": "garden, gardening, plants, lawn, greenhouse, allotment, outdoors",
    "Pets": "dogs, cats, puppy, pet, paws, pet owners, animals",
    "Clothing": "wardrobe, outfits, clothes, fashion, everyday wear, style, dressing up",
    "Sports": "sport, training, athletes, workout, active, outdoors, team",
    "Baby": "baby, newborn, toddler, nursery, parents, infants, mum",
    "Office": "office, desk, work, study, paperwork, meetings, home office",
    "Car": "car, driving, vehicle, drivers, garage, road trips, van",
}
SALES_WORDS = {
    "Gifts": "gift, gift boxed, birthday present",
    "Clearance": "sale, last few, end of line",
    "Seasonal": "summer, winter, holidays",
    "New in": "new, latest model, just landed",
}
EVERYDAY_WORDS = (
    "premium, classic, compact, large, small, modern, durable, practical, essential, stylish, "
    "popular, great value, handy, high quality, gift, new, sale, summer, winter"
)
COLOURS = "black, white, grey, navy, green, red, blue, cream, sage, copper, pink, yellow"
BRANDS = (
    "Harlow & Finch, Norrbo, Tamsel, Brightwell, Oakmere, Kestrix, Veluno, Pellam, Dunmore, "
    "Lumira, Fjellby, Castlewick, Ottavo, Rivenhall, Mapleby, Zenku"
)
DESCRIPTIONS = (
    "Ideal for {department}, {detail}.",
    "Made for {department}.",
    "{detail}, {department}; two year guarantee.",
    "{everyday} choice for {department}.",
    "Features: {detail}, {everyday}.",
    "Customers like it for {department} and {other}.",
)

SIZE_EXPONENT = 0.5  # the r-th largest group has weight r ** -SIZE_EXPONENT
N_LEAST_ROWS = 8  # of every group
P_BRAND, P_EVERYDAY, P_DETAIL, P_COLOUR = 0.5, 0.4, 0.5, 0.4  # in a title
P_OWN_WORD = 0.5  # the title has a word of the group's own: 'oven' gloves
P_FOR_DEPARTMENT = 0.75  # the title says whom it is for
P_SALES_WORD = 0.15  # the title of a product in a bad category says so
P_MISSPELT = 0.05
N_LEAST_MISSPELT = 5  # letters; nobody could read a shorter title
P_DESCRIPTION = 0.85  # the other rows are short
P_ASTRAY = 0.02  # a person put the product into another group of its department


@dataclass(frozen=True, eq=False)
class ShopCatalogue:
    """Products with their category, and the categories that group unlike things.

    Attributes
    ----------
    titles, descriptions : tuple of str, length n_rows
        A description may be empty.
    y : ndarray of object, shape (n_rows,)
        Leaf labels of the taxonomy.
    taxonomy : Taxonomy
        Two or three levels deep.
    inconsistent : tuple of str
        Labels of the categories that were made to sell, not to group.
    """

    titles: tuple[str, ...]
    descriptions: tuple[str, ...]
    y: NDArray[np.object_]
    taxonomy: Taxonomy
    inconsistent: tuple[str, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """Title and description of every product, as one text."""
        pairs = zip(self.titles, self.descriptions, strict=True)
        return tuple(f"{title}. {description}".strip() for title, description in pairs)

    @property
    def dataset(self) -> Dataset:
        """Texts with their labels, without the truth about the taxonomy."""
        return Dataset(np.array(self.texts, dtype=object), self.y, self.taxonomy, "shop")

    def to_rows(self) -> list[dict[str, str]]:
        """Return one dictionary a product: title, description, and category as 'A > B > C'."""
        path = {
            label: PATH_SEPARATOR.join(map(str, self.taxonomy.path_of(label)))
            for label in self.taxonomy.leaves
        }
        products = zip(self.titles, self.descriptions, self.y, strict=True)
        return [
            {"title": title, "description": description, "category": path[label]}
            for title, description, label in products
        ]

    def to_csv(self, file: str | PathLike[str]) -> None:
        """Write the products as a UTF-8 table with the columns title, description and category."""
        with open(file, "w", encoding="utf-8", newline="") as out:  # noqa: PTH123  (any path-like)
            writer = csv.DictWriter(out, ["title", "description", "category"])
            writer.writeheader()
            writer.writerows(self.to_rows())


@dataclass(frozen=True)
class _Group:
    """What is known of one product group."""

    department: str
    path: tuple[str, ...]
    own_words: tuple[str, ...]
    nouns: tuple[str, ...]
    details: tuple[str, ...]


def make_shop_catalogue(n_rows: int = 4000, *, random_state: int = 0) -> ShopCatalogue:
    """Return the products of a made-up shop whose category tree has a few bad categories.

    Sizes of product groups follow a power law. Titles leave things out, share words across
    categories and are sometimes misspelt; a few products sit in the wrong group, as in any shop.

    Parameters
    ----------
    n_rows : int
        Number of products, at least 8 per product group.
    random_state : int
        Seed.

    Examples
    --------
    >>> shop = make_shop_catalogue(1000)
    >>> shop.inconsistent
    ('Gifts', 'Clearance', 'Seasonal', 'New in')
    >>> sorted(shop.to_rows()[0])
    ['category', 'description', 'title']
    """
    groups = _read_groups()
    if n_rows < N_LEAST_ROWS * len(groups):
        raise DataError(
            f"n_rows must be at least {N_LEAST_ROWS} per product group, "
            f"{N_LEAST_ROWS * len(groups)} for {len(groups)}, but is {n_rows}"
        )
    rng = np.random.default_rng(random_state)
    rank = 1 + rng.permutation(len(groups))
    weight = rank**-SIZE_EXPONENT
    sizes = N_LEAST_ROWS + rng.multinomial(
        n_rows - N_LEAST_ROWS * len(groups), weight / weight.sum()
    )
    shown = rng.permutation(np.repeat(np.arange(len(groups)), sizes))
    described = _lead_astray(shown, groups, rng)
    titles, descriptions = zip(
        *(_describe(groups[position], rng) for position in described), strict=True
    )
    leaf_labels = np.array([group.path[-1] for group in groups], dtype=object)
    return ShopCatalogue(
        titles=titles,
        descriptions=descriptions,
        y=leaf_labels[shown],
        taxonomy=Taxonomy.from_paths(group.path for group in groups),
        inconsistent=INCONSISTENT,
    )


def _read_groups() -> list[_Group]:
    groups = []
    for line in PRODUCT_GROUPS.strip().splitlines():
        department, kind, path, own_words = line.split(" | ")
        nouns, details = KIND_WORDS[kind].split("; ")
        groups.append(
            _Group(
                department,
                tuple(path.split(PATH_SEPARATOR)),
                _words(own_words),
                _words(nouns),
                _words(details),
            )
        )
    return groups


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split(", "))


def _lead_astray(
    shown: NDArray[np.int64], groups: list[_Group], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return what each product is: its group, or rarely another one of the same department."""
    members: dict[str, list[int]] = {}
    for position, group in enumerate(groups):
        members.setdefault(group.department, []).append(position)
    described = shown.copy()
    for row in np.flatnonzero(rng.random(shown.size) < P_ASTRAY):
        described[row] = rng.choice(members[groups[shown[row]].department])
    return described


def _describe(group: _Group, rng: np.random.Generator) -> tuple[str, str]:
    """Return a title and a description of one product of a group."""
    department = _words(DEPARTMENT_WORDS[group.department])
    everyday = _words(EVERYDAY_WORDS)
    sales = _words(SALES_WORDS.get(group.path[0], ""))
    # What a title may have, in its order: how often, how it is joined to the rest, and from where.
    parts = (
        (P_BRAND, "{} ", _words(BRANDS)),
        (P_EVERYDAY, "{} ", everyday),
        (P_OWN_WORD, "{} ", group.own_words),
        (1.0, "{}", group.nouns),
        (P_FOR_DEPARTMENT, " for {}", department),
        (P_DETAIL, ", {}", group.details),
        (P_COLOUR, ", {}", _words(COLOURS)),
        (P_SALES_WORD if group.path[0] in SALES_WORDS else 0.0, " - {}", sales),
    )
    chance = rng.random(len(parts))
    title = "".join(
        joint.format(_pick(words, rng))
        for (probability, joint, words), drawn in zip(parts, chance, strict=True)
        if drawn < probability
    )
    if rng.random() < P_MISSPELT and len(title) > N_LEAST_MISSPELT:
        title = _misspell(title, rng)
    description = ""
    if rng.random() < P_DESCRIPTION:
        description = _pick(DESCRIPTIONS, rng).format(
            department=_pick(department, rng),
            other=_pick(department, rng),
            detail=_pick(group.details, rng),
            everyday=_pick(everyday[:14], rng),
        )
    return _capitalised(title), _capitalised(description)


def _pick(words: tuple[str, ...], rng: np.random.Generator) -> str:
    return words[int(rng.integers(len(words)))]


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def _misspell(text: str, rng: np.random.Generator) -> str:
    """Return the text with two neighbouring letters swapped, or one left out."""
    place = int(rng.integers(1, len(text) - 2))
    if rng.random() < 0.5:
        return text[:place] + text[place + 1 :]
    return text[:place] + text[place + 1] + text[place] + text[place + 2 :]
