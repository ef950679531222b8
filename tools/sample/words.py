"""The names, places and phrases that the sample shop is made of."""

from __future__ import annotations


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


CATEGORIES = {
    "Furniture": ("Chairs", "Desks", "Lamps", "Shelves"),
    "Kitchen": ("Knives", "Pans", "Kettles", "Plates"),
    "Outdoor": ("Tents", "Backpacks", "Bottles", "Hammocks"),
    "Electronics": ("Headphones", "Keyboards", "Monitors", "Speakers"),
    "Clothing": ("Jackets", "Shirts", "Socks", "Hats"),
}

SUPPLIERS = tuple(
    f"{first} {second}"
    for first in ("Northwind", "Harbor", "Blue Pine", "Granite", "Old Mill", "Lumen", "Meridian", "Kestrel")
    for second in ("Works", "Trading", "Goods", "Supply", "Workshop")
)

# name, code, cities; the shop's best markets first
COUNTRIES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("Germany", "DE", ("Berlin", "Hamburg", "Leipzig", "Köln")),
    ("France", "FR", ("Paris", "Lyon", "Nantes")),
    ("Netherlands", "NL", ("Amsterdam", "Utrecht")),
    ("Spain", "ES", ("Madrid", "Sevilla", "Bilbao")),
    ("Italy", "IT", ("Milano", "Torino", "Bari")),
    ("Poland", "PL", ("Kraków", "Gdańsk")),
    ("Austria", "AT", ("Wien", "Graz")),
    ("Sweden", "SE", ("Stockholm", "Malmö")),
    ("Denmark", "DK", ("København", "Aarhus")),
    ("Portugal", "PT", ("Lisboa", "Porto")),
)

FIRST_NAMES = _words(
    "Ada Alma Anton Bruno Carla Clara Daniel Elena Emil Eva Felix Greta Hugo Ida Jan Jonas Karin Lara "
    "Lena Leo Lucía Marek Mia Nils Nora Olga Oscar Paula Pedro Rosa Sofia Sven Tomas Vera Viktor Zoë"
)

LAST_NAMES = _words(
    "Almeida Andersen Bauer Bianchi Costa Dubois Eriksson Ferrari Fischer Garcia Hansen Hoffmann Janssen "
    "Keller Kowalski Lambert Larsen Lopez Martin Meyer Moreau Novak Olsen Peeters Petit Ricci Rossi Santos "
    "Schmidt Silva Torres Visser Wagner Weber Wójcik Zimmer"
)

COLORS = ("black", "white", "green", "blue", "red", "grey", "yellow")
MATERIALS = ("wood", "steel", "cotton", "plastic", "glass", "leather")
STYLES = ("Classic", "Compact", "Foldable", "Premium", "Everyday", "Studio", "Alpine", "Nordic")

# the till wrote "completed", an older import "Completed", and a partner's feed "COMPLETED"
ORDER_STATUS = (
    *("completed", "completed", "completed", "completed", "Completed", "Completed", "COMPLETED"),
    *("shipped", "Shipped", "cancelled", "Cancelled", "pending"),
)

EVENT_TYPES = ("page_view", "page_view", "search", "add_to_cart", "checkout", "purchase", "newsletter_signup")

COMMENTS = {
    1: ("Broke on the second day.", "Not at all as described."),
    2: ("Late, and smaller than expected.", "The finish is poor."),
    3: ("Does the job.", "Fine for the price."),
    4: ("Good value.", "Solid, would buy again."),
    5: ("Excellent!", "Exactly what I was looking for."),
}
