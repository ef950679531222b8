"""Makes the sample shop's rows: seeded, so that every machine builds the same shop.

Each function takes the dice and the rows it refers to, and returns tuples in the order of the
columns in ``schema.sql``. Dates are counted from fixed days; nothing looks at the clock.
"""

from __future__ import annotations

import json
import random
from bisect import bisect_right
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

Row = tuple[Any, ...]
Rows = list[Row]
Item = TypeVar("Item")

OPENED = datetime(2021, 1, 4)  # the shop's first day
FIRST_ORDER = datetime(2023, 1, 1)
CLOSE = datetime(2024, 7, 1)  # the day the data ends, exclusive
SHARDS = tuple((2024, month) for month in range(1, 7))
EVENTS_PER_SHARD = 5500


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


class Dice:
    """Random choices built on ``random()`` alone, the one sequence Python promises to keep."""

    def __init__(self, seed: int) -> None:
        self._next = random.Random(seed).random

    def chance(self, probability: float) -> bool:
        return self._next() < probability

    def between(self, low: int, high: int) -> int:
        """Return a whole number from ``low`` to ``high``, both included."""
        return low + int(self._next() * (high - low + 1))

    def pick(self, items: Sequence[Item]) -> Item:
        return items[int(self._next() * len(items))]

    def favour(self, items: Sequence[Item], power: float = 2.5) -> Item:
        """Return an item, preferably from the front of ``items``, as customers prefer a few products."""
        return items[int(self._next() ** power * len(items))]

    def moment(self, start: datetime, end: datetime) -> datetime:
        """Return a whole second from ``start`` up to ``end``, excluded."""
        return start + timedelta(seconds=int(self._next() * (end - start).total_seconds()))


def categories() -> Rows:
    """Return main categories, each before its children: ``(id, name, parent)``."""
    rows: Rows = []
    for main, children in CATEGORIES.items():
        rows.append((len(rows) + 1, main, None))
        parent = len(rows)
        rows += [(parent + number, child, parent) for number, child in enumerate(children, 1)]
    return rows


def suppliers(dice: Dice) -> Rows:
    rows: Rows = []
    for number, name in enumerate(SUPPLIERS, 1):
        email = f"sales@{name.lower().replace(' ', '-')}.example" if dice.chance(0.85) else None
        founded = dice.moment(OPENED, FIRST_ORDER).date().isoformat()
        rows.append((number, name, dice.pick(COUNTRIES)[0], email, founded))
    return rows


def products(dice: Dice, categories: Rows, suppliers: Rows, count: int = 600) -> Rows:
    leaves = [row for row in categories if row[2] is not None]
    rows: Rows = []
    for number in range(1, count + 1):
        category = dice.pick(leaves)
        color, material = dice.pick(COLORS), dice.pick(MATERIALS)
        attributes: dict[str, Any] = {"color": color, "material": material}
        if dice.chance(0.4):
            attributes["warranty_months"] = dice.pick((12, 24, 36))
        name = f"{dice.pick(STYLES)} {category[1].rstrip('s')} {number:03d}"
        price = dice.between(5, 400) + 0.99
        weight = dice.between(50, 9000) if dice.chance(0.9) else None
        rows.append((number, name, category[0], dice.pick(suppliers)[0], price, weight,
                     json.dumps(attributes), int(dice.chance(0.08)),
                     str(dice.moment(OPENED, FIRST_ORDER))))  # fmt: skip
    return rows


def customers(dice: Dice, count: int = 3000) -> Rows:
    """Return customers in the order in which they joined."""
    rows: Rows = []
    dates = sorted(dice.moment(OPENED, CLOSE - timedelta(days=60)) for _ in range(count))
    for number, joined in enumerate(dates, 1):
        first, last = dice.pick(FIRST_NAMES), dice.pick(LAST_NAMES)
        phone = f"+{dice.between(30, 49)} {dice.between(100000, 999999)}" if dice.chance(0.7) else None
        born = dice.between(1945, 2005) if dice.chance(0.8) else None
        country = dice.favour(COUNTRIES, 1.6)[0]
        segment = dice.favour(("consumer", "business", "student"), 1.8)
        email = f"{first}.{last}.{number}@mail.example".lower()
        rows.append((number, f"{first} {last}", email, phone, country, segment, born, str(joined)))
    return rows


def addresses(dice: Dice, customers: Rows) -> Rows:
    """Return one shipping address for each customer, with the customer's number; later ones for billing."""
    places = {country: (code, cities) for country, code, cities in COUNTRIES}
    kinds = [(customer, "shipping") for customer in customers]
    kinds += [(customer, "billing") for customer in customers if dice.chance(0.3)]
    rows: Rows = []
    for number, (customer, kind) in enumerate(kinds, 1):
        code, cities = places[customer[4]]
        street = f"{dice.between(1, 180)} {dice.pick(LAST_NAMES)} Street"
        postal_code = str(dice.between(10000, 99999))
        rows.append((number, customer[0], kind, street, dice.pick(cities), postal_code, code))
    return rows


def employees(dice: Dice, count: int = 45) -> Rows:
    """Return employees: the first leads the shop, the next four a department each."""
    departments = ("Management", "Support", "Logistics", "Marketing", "Finance")
    rows: Rows = []
    for number in range(1, count + 1):
        department = departments[(number - 1) % 5] if number <= 5 else dice.pick(departments[1:])
        title = ("Director" if number == 1 else "Head of Department") if number <= 5 else "Specialist"
        manager = None if number == 1 else 1 if number <= 5 else departments.index(department) + 1
        name = f"{dice.pick(FIRST_NAMES)} {dice.pick(LAST_NAMES)}"
        salary = dice.between(280, 520) * 100 + (40_000 if number <= 5 else 0)
        hired = dice.moment(OPENED, FIRST_ORDER if number <= 5 else CLOSE).date()
        rows.append((number, name, department, title, manager, salary, hired.isoformat()))
    return rows


def orders(dice: Dice, customers: Rows, products: Rows, count: int = 13_000) -> tuple[Rows, Rows]:
    """Return orders by date, and their items; an order's total is its items' plus the fee."""
    ordered: Rows = []
    items: Rows = []
    joined = [customer[7] for customer in customers]
    dates = sorted(dice.moment(FIRST_ORDER, CLOSE) for _ in range(count))
    for number, date in enumerate(dates, 1):
        customer = dice.favour(range(bisect_right(joined, str(date)))) + 1
        lines: Rows = []
        for line in range(1, dice.favour((1, 2, 3, 4, 6), 1.3) + 1):
            product = dice.favour(products, 1.5)
            discount = dice.pick((0.0, 0.0, 0.0, 0.1, 0.2))
            lines.append((number, line, product[0], dice.favour((1, 2, 3, 5)), product[4], discount))
        fee = dice.pick((0.0, 4.9, 9.9))
        total = round(sum(row[3] * row[4] * (1 - row[5]) for row in lines) + fee, 2)
        status = dice.favour(ORDER_STATUS, 1.7)
        left = str(date + timedelta(hours=dice.between(5, 120)))
        shipped = left if status.lower() in ("completed", "shipped") else None
        coupon = dice.pick(("WELCOME10", "SPRING24", "FRIENDS")) if dice.chance(0.15) else None
        ordered.append((number, customer, customer, dice.favour(("web", "app", "phone")), status,
                        total, fee, coupon, str(date), shipped))  # fmt: skip
        items.extend(lines)
    return ordered, items


def payments(dice: Dice, orders: Rows) -> Rows:
    """Return a settled payment for most orders, and now and then a failed attempt before it."""
    rows: Rows = []
    for order in orders:
        method = dice.favour(("card", "paypal", "invoice", "gift card"), 1.7)
        if dice.chance(0.06):
            rows.append((len(rows) + 1, order[0], method, order[5], "failed", None))
        if order[4].lower() not in ("cancelled", "pending"):
            paid = str(datetime.fromisoformat(order[8]) + timedelta(minutes=dice.between(1, 900)))
            rows.append((len(rows) + 1, order[0], method, order[5], "settled", paid))
    return rows


def returns(dice: Dice, orders: Rows, items: Rows) -> Rows:
    status = {order[0]: order[4].lower() for order in orders}
    date = {order[0]: datetime.fromisoformat(order[8]) for order in orders}
    rows: Rows = []
    for order, _, product, quantity, price, discount in items:
        if status[order] != "completed" or not dice.chance(0.06):
            continue
        reason = dice.pick(("damaged", "too late", "wrong item", "changed mind", None))
        back = date[order] + timedelta(days=dice.between(4, 40))
        refund = round(quantity * price * (1 - discount), 2)
        rows.append((len(rows) + 1, order, product, reason, refund, f"{back:%d/%m/%Y}"))
    return rows


def reviews(dice: Dice, orders: Rows, items: Rows) -> Rows:
    buyer = {order[0]: (order[1], datetime.fromisoformat(order[8])) for order in orders}
    rows: Rows = []
    for order, _, product, *_ in items:
        if not dice.chance(0.17):
            continue
        customer, date = buyer[order]
        rating = dice.favour((5, 4, 3, 1, 2), 1.6)
        comment = dice.pick(COMMENTS[rating]) if dice.chance(0.6) else None
        written = (date + timedelta(days=dice.between(3, 60))).date().isoformat()
        rows.append((len(rows) + 1, product, customer, rating, comment, written))
    return rows


def support_tickets(dice: Dice, orders: Rows, employees: Rows, count: int = 2500) -> Rows:
    agents = [row[0] for row in employees if row[2] == "Support"]
    rows: Rows = []
    for number in range(1, count + 1):
        order = dice.pick(orders)
        opened = datetime.fromisoformat(order[8]) + timedelta(hours=dice.between(1, 400))
        closed = str(opened + timedelta(hours=dice.between(1, 200))) if dice.chance(0.8) else None
        rows.append((number, order[1], order[0] if dice.chance(0.7) else None,
                     dice.pick(agents) if closed or dice.chance(0.5) else None,
                     dice.pick(("delivery", "payment", "product question", "return", "account")),
                     dice.favour(("normal", "low", "high", "urgent"), 1.5),
                     "closed" if closed else "open", str(opened), closed))  # fmt: skip
    return rows


def events(dice: Dice, customers: Rows, products: Rows, year: int, month: int) -> Rows:
    """Return the web events of one month; a visitor who did not sign in has no customer number."""
    start = datetime(year, month, 1)
    end = datetime(year + month // 12, month % 12 + 1, 1)
    rows: Rows = []
    for moment in sorted(dice.moment(start, end) for _ in range(EVENTS_PER_SHARD + 40 * month)):
        kind = dice.favour(EVENT_TYPES, 1.9)
        payload: dict[str, Any] = {"device": dice.pick(("mobile", "desktop", "tablet"))}
        if kind == "search":
            payload["query"] = dice.pick(COLORS)
        elif kind != "newsletter_signup":
            payload["product_id"] = dice.favour(products)[0]
        customer = dice.favour(customers)[0] if dice.chance(0.6) else None
        number = year * 10_000_000 + month * 100_000 + len(rows) + 1
        session = f"s{dice.between(0, 16**6 - 1):06x}"
        rows.append((number, customer, session, kind, str(moment), json.dumps(payload)))
    return rows
