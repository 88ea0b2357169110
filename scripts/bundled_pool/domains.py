"""The domains: what their records are and in which sentences each family of goals is asked for."""

from dataclasses import dataclass

from scripts.bundled_pool.families import Add, Amount, Count, Each, Family, FindSet, Link, Most, Remove, SetById, Transfer, When
from scripts.bundled_pool.goals import Thing
from scripts.bundled_pool.words import COLORS, DAYS, LEVELS, PEOPLE, SIDES, TITLES

NAMES, TITLE_NAMES = tuple(PEOPLE), tuple(TITLES)
SMALL, GRADES = tuple(range(5)), tuple(range(1, 10))


@dataclass(frozen=True, eq=False)
class Domain:
    """One environment: key (also the module of its class), class name, records and families of goals."""

    key: str
    class_name: str
    main: Thing
    families: tuple[Family, ...]
    second: Thing | None = None
    report: bool = False
    guarded: bool = False  # some tasks also check that all other records stay as they were


def _person(collection: str, noun: str, **extra) -> Thing:
    return Thing(collection, noun, NAMES, extra=extra)


DOMAINS = (
    Domain(
        "library",
        "Library",
        Thing("books", "book", TITLE_NAMES, "title", {"shelf": SIDES, "state": ("fine", "torn", "lost")}),
        (
            SetById("move_book", ("Put book {id} on shelf {value}.", "Move {id} to shelf {value}."), "shelf"),
            FindSet("set_state", ("Mark the book {name} as {value}.", "The book {name} is {value}, note it."), "state"),
            FindSet("move_book", ("Put the book {name} on shelf {value}.",), "shelf"),
            Add("add_book", ("Add the book {name} on shelf {shelf}.",), ("shelf",)),
            Remove("remove_book", ("Remove the book {name}.", "Take the book {name} out for good.")),
            Each("move_book", ("Put every book of shelf {by} on shelf {value}.",), "list_shelf", "shelf", "shelf"),
            Link("lend_book", ("Lend the book {name} to {other}.", "{other} wants the book {name}, lend it."), "main", "member"),
            When("move_book", ("If the book {name} is {asked}, put it on shelf {yes}, else on shelf {no}.",), "state", "shelf"),
            Count("report_count", ("Report how many books are on shelf {by}.",), "list_shelf", "shelf"),
        ),
        _person("members", "member"),
        report=True,
        guarded=True,
    ),
    Domain(
        "clinic",
        "Clinic",
        Thing("patients", "patient", NAMES, "name", {"ward": SIDES, "risk": LEVELS}),
        (
            SetById("set_risk", ("Set the risk of patient {id} to {value}.",), "risk"),
            FindSet("set_risk", ("Set the risk of {name} to {value}.", "The risk of {name} is {value} now."), "risk"),
            FindSet("move_patient", ("Move {name} to ward {value}.",), "ward"),
            Add("admit_patient", ("Admit {name} to ward {ward} with risk {risk}.",), ("ward", "risk")),
            Remove("discharge_patient", ("Discharge {name}.", "{name} may go home.")),
            Each("set_risk", ("Set the risk of all patients in ward {by} to {value}.",), "list_ward", "ward", "risk"),
            Link("assign_doctor", ("Put {name} under doctor {other}.", "Doctor {other} takes {name}."), "main", "doctor"),
            When("move_patient", ("If the risk of {name} is {asked}, move {name} to ward {yes}, else to ward {no}.",), "risk", "ward"),
        ),
        _person("doctors", "doctor"),
    ),
    Domain(
        "garage",
        "Garage",
        Thing("cars", "car", NAMES, "owner", {"color": COLORS, "state": ("broken", "open", "fixed")}),
        (
            SetById("set_state", ("Set car {id} to {value}.",), "state"),
            FindSet("set_state", ("The car of {name} is {value}.", "Set the car of {name} to {value}."), "state"),
            FindSet("paint_car", ("Paint the car of {name} {value}.",), "color"),
            Add("take_car", ("Take in the {color} car of {name}.",), ("color",)),
            Remove("scrap_car", ("Scrap the car of {name}.",)),
            Each("paint_car", ("Paint every {by} car {value}.",), "list_color", "color", "color"),
            Link("give_job", ("Give the car of {name} to {other}.", "{other} repairs the car of {name}."), "second", "jobs", True),
            When("paint_car", ("If the car of {name} is {asked}, paint it {yes}, else {no}.",), "state", "color"),
        ),
        _person("mechanics", "mechanic", jobs=[]),
        guarded=True,
    ),
    Domain(
        "hotel",
        "Hotel",
        Thing("rooms", "room", TITLE_NAMES, "name", {"wing": SIDES, "price": GRADES, "state": ("clean", "dirty", "shut")}),
        (
            SetById("set_state", ("Room {id} is {value}.", "Set room {id} to {value}."), "state"),
            FindSet("set_price", ("Set the price of room {name} to {value}.",), "price"),
            FindSet("set_state", ("Room {name} is {value} now.",), "state"),
            Add("add_room", ("Open the room {name} in wing {wing} for {price}.",), ("wing", "price")),
            Each("set_state", ("Set all rooms in wing {by} to {value}.",), "list_wing", "wing", "state"),
            Link("check_in", ("Check {other} in to room {name}.", "{other} stays in room {name}."), "second", "room"),
            Count("report_count", ("Report how many rooms wing {by} has.",), "list_wing", "wing"),
            Most("set_state", ("Set the cheapest room in wing {by} to {value}.",), "list_wing", "wing", "price", "state", True),
        ),
        _person("guests", "guest"),
        report=True,
    ),
    Domain(
        "farm",
        "Farm",
        Thing("animals", "animal", TITLE_NAMES, "name", {"pen": SIDES, "health": ("well", "weak", "sick"), "food": SMALL}),
        (
            SetById("move_animal", ("Move animal {id} to pen {value}.",), "pen"),
            FindSet("set_health", ("{name} is {value}.", "Note that {name} is {value}."), "health"),
            FindSet("move_animal", ("Bring {name} to pen {value}.",), "pen"),
            Add("buy_animal", ("Buy {name} for pen {pen}.",), ("pen",)),
            Remove("sell_animal", ("Sell {name}.",)),
            Each("move_animal", ("Move all animals of pen {by} to pen {value}.",), "list_pen", "pen", "pen"),
            Amount("feed_animal", ("Feed {name} {amount}.", "Give {amount} food to {name}."), "food"),
            When("move_animal", ("If {name} is {asked}, move it to pen {yes}, else to pen {no}.",), "health", "pen"),
        ),
    ),
    Domain(
        "bank",
        "Bank",
        Thing("accounts", "account", NAMES, "owner", {"branch": SIDES, "state": ("open", "frozen"), "balance": GRADES}),
        (
            SetById("set_state", ("Set account {id} to {value}.",), "state"),
            FindSet("set_state", ("Set the account of {name} to {value}.",), "state"),
            Add("open_account", ("Open an account for {name} at branch {branch}.",), ("branch",)),
            Remove("close_account", ("Close the account of {name}.", "{name} leaves, close the account.")),
            Amount("deposit", ("Deposit {amount} for {name}.", "{name} pays {amount} in."), "balance"),
            Transfer("transfer", ("Send {amount} from {name} to {other}.", "{name} owes {other} {amount}, send it."), "balance"),
            Most("set_state", ("Set the richest account of branch {by} to {value}.",), "list_branch", "branch", "balance", "state"),
        ),
        guarded=True,
    ),
    Domain(
        "school",
        "School",
        Thing("courses", "course", TITLE_NAMES, "title", {"day": DAYS, "level": LEVELS}, {"pupils": []}),
        (
            SetById("move_course", ("Move course {id} to {value}.",), "day"),
            FindSet("set_level", ("Set the level of course {name} to {value}.",), "level"),
            FindSet("move_course", ("Move the course {name} to {value}.", "The course {name} is on {value} now."), "day"),
            Add("add_course", ("Offer the course {name} on {day} at level {level}.",), ("day", "level")),
            Remove("cancel_course", ("Cancel the course {name}.",)),
            Each("move_course", ("Move all courses of {by} to {value}.",), "list_day", "day", "day"),
            Link("enroll_pupil", ("Enroll {other} in {name}.", "{other} joins the course {name}."), "main", "pupils", True),
            When("move_course", ("If the level of {name} is {asked}, move it to {yes}, else to {no}.",), "level", "day"),
        ),
        _person("pupils", "pupil"),
    ),
    Domain(
        "museum",
        "Museum",
        Thing("exhibits", "exhibit", TITLE_NAMES, "title", {"hall": SIDES, "rank": GRADES, "state": ("shown", "stored", "loaned")}),
        (
            SetById("move_exhibit", ("Move exhibit {id} to hall {value}.",), "hall"),
            FindSet("set_rank", ("Set the rank of {name} to {value}.",), "rank"),
            FindSet("set_state", ("{name} is {value} now.", "Mark {name} as {value}."), "state"),
            Add("add_exhibit", ("Add {name} in hall {hall} with rank {rank}.",), ("hall", "rank")),
            Remove("remove_exhibit", ("Remove {name} for good.",)),
            Each("set_state", ("Mark everything in hall {by} as {value}.",), "list_hall", "hall", "state"),
            Count("report_count", ("Report how many exhibits hall {by} has.",), "list_hall", "hall"),
            Most("set_state", ("Mark the exhibit of top rank in hall {by} as {value}.",), "list_hall", "hall", "rank", "state"),
        ),
        report=True,
        guarded=True,
    ),
    Domain(
        "kitchen",
        "Kitchen",
        Thing("dishes", "dish", TITLE_NAMES, "name", {"menu": DAYS, "price": GRADES}),
        (
            SetById("set_menu", ("Put dish {id} on the {value} menu.",), "menu"),
            FindSet("set_price", ("The dish {name} costs {value}.", "Set the price of {name} to {value}."), "price"),
            FindSet("set_menu", ("Put {name} on the {value} menu.",), "menu"),
            Add("add_dish", ("Add the dish {name} to the {menu} menu for {price}.",), ("menu", "price")),
            Remove("drop_dish", ("Drop the dish {name}.",)),
            Each("set_menu", ("Put all dishes of {by} on the {value} menu.",), "list_menu", "menu", "menu"),
            Link("teach_dish", ("Teach {name} to {other}.", "{other} learns the dish {name}."), "second", "knows", True),
            Most("set_menu", ("Put the cheapest dish of {by} on the {value} menu.",), "list_menu", "menu", "price", "menu", True),
        ),
        _person("cooks", "cook", knows=[]),
    ),
    Domain(
        "fleet",
        "Fleet",
        Thing("trucks", "truck", TITLE_NAMES, "name", {"depot": SIDES, "load": SMALL, "state": ("ready", "broken", "away")}),
        (
            SetById("send_truck", ("Send truck {id} to depot {value}.",), "depot"),
            FindSet("set_state", ("The truck {name} is {value}.",), "state"),
            FindSet("send_truck", ("Send the truck {name} to depot {value}.",), "depot"),
            Add("buy_truck", ("Buy the truck {name} for depot {depot}.",), ("depot",)),
            Each("set_state", ("Set all trucks at depot {by} to {value}.",), "list_depot", "depot", "state"),
            Link("assign_driver", ("Let {other} drive {name}.", "{other} drives the truck {name}."), "second", "truck"),
            Amount("load_truck", ("Load {amount} on the truck {name}.",), "load"),
            When("send_truck", ("If {name} is {asked}, send it to depot {yes}, else to depot {no}.",), "state", "depot"),
        ),
        _person("drivers", "driver"),
        guarded=True,
    ),
    Domain(
        "garden",
        "Garden",
        Thing("plants", "plant", TITLE_NAMES, "name", {"bed": SIDES, "size": ("small", "mid", "big"), "water": SMALL}),
        (
            SetById("set_size", ("Cut plant {id} to {value}.",), "size"),
            FindSet("set_size", ("Cut the plant {name} to {value}.",), "size"),
            FindSet("move_plant", ("Move the plant {name} to bed {value}.",), "bed"),
            Add("add_plant", ("Plant {name} in bed {bed}, size {size}.",), ("bed", "size")),
            Remove("pull_plant", ("Pull out {name}.", "The plant {name} must go.")),
            Each("move_plant", ("Move all plants of bed {by} to bed {value}.",), "list_bed", "bed", "bed"),
            Amount("water_plant", ("Water {name} with {amount}.",), "water"),
            Count("report_count", ("Report how many plants bed {by} has.",), "list_bed", "bed"),
        ),
        report=True,
    ),
    Domain(
        "desk",
        "Desk",
        Thing("tickets", "ticket", TITLE_NAMES, "topic", {"urgency": LEVELS, "state": ("new", "waiting")}),
        (
            SetById("set_urgency", ("Set ticket {id} to {value}.",), "urgency"),
            FindSet("set_urgency", ("Set the ticket on {name} to {value}.",), "urgency"),
            FindSet("set_state", ("The ticket on {name} is {value}.",), "state"),
            Add("file_ticket", ("File a ticket on {name} with urgency {urgency}.",), ("urgency",)),
            Each("set_urgency", ("Set all tickets of urgency {by} to {value}.",), "list_urgency", "urgency", "urgency"),
            Link("assign_agent", ("Assign {other} to the ticket on {name}.", "{other} takes the ticket on {name}."), "main", "agent"),
            When("set_urgency", ("If the ticket on {name} is {asked}, set it to {yes}, else to {no}.",), "state", "urgency"),
        ),
        _person("agents", "agent"),
        guarded=True,
    ),
    Domain(
        "theater",
        "Theater",
        Thing("shows", "show", TITLE_NAMES, "title", {"day": DAYS, "price": GRADES}, {"cast": []}),
        (
            SetById("move_show", ("Move show {id} to {value}.",), "day"),
            FindSet("set_price", ("Set the price of the show {name} to {value}.",), "price"),
            FindSet("move_show", ("Move the show {name} to {value}.",), "day"),
            Add("plan_show", ("Plan the show {name} on {day} for {price}.",), ("day", "price")),
            Remove("cancel_show", ("Cancel the show {name}.",)),
            Each("move_show", ("Move all shows of {by} to {value}.",), "list_day", "day", "day"),
            Link("cast_actor", ("Cast {other} in {name}.", "{other} plays in the show {name}."), "main", "cast", True),
            Most("move_show", ("Move the cheapest show of {by} to {value}.",), "list_day", "day", "price", "day", True),
        ),
        _person("actors", "actor"),
    ),
    Domain(
        "harbor",
        "Harbor",
        Thing("ships", "ship", TITLE_NAMES, "name", {"dock": SIDES, "flag": COLORS, "cargo": SMALL}),
        (
            SetById("move_ship", ("Move ship {id} to dock {value}.",), "dock"),
            FindSet("set_flag", ("Give the ship {name} a {value} flag.",), "flag"),
            FindSet("move_ship", ("Move the ship {name} to dock {value}.",), "dock"),
            Remove("let_go", ("Let the ship {name} go.", "The ship {name} leaves.")),
            Each("set_flag", ("Give all ships at dock {by} a {value} flag.",), "list_dock", "dock", "flag"),
            Link("send_pilot", ("Send {other} to the ship {name}.",), "main", "pilot"),
            Amount("load_ship", ("Load {amount} on the ship {name}.",), "cargo"),
            Count("report_count", ("Report how many ships are at dock {by}.",), "list_dock", "dock"),
            When("move_ship", ("If the flag of {name} is {asked}, move it to dock {yes}, else to dock {no}.",), "flag", "dock"),
        ),
        _person("pilots", "pilot"),
        report=True,
    ),
    Domain(
        "lab",
        "Lab",
        Thing("samples", "sample", TITLE_NAMES, "name", {"rack": SIDES, "grade": GRADES, "result": ("none", "pass", "fail")}),
        (
            SetById("set_result", ("Set the result of {id} to {value}.",), "result"),
            FindSet("set_grade", ("Set the grade of {name} to {value}.",), "grade"),
            FindSet("set_result", ("The result of {name} is {value}.",), "result"),
            Add("add_sample", ("Add the sample {name} to rack {rack}.",), ("rack",)),
            Remove("destroy_sample", ("Destroy the sample {name}.",)),
            Each("set_result", ("Set the result of every sample in rack {by} to {value}.",), "list_rack", "rack", "result"),
            Count("report_count", ("Report how many samples are in rack {by}.",), "list_rack", "rack"),
            Most("set_result", ("Set the result of the best sample in rack {by} to {value}.",), "list_rack", "rack", "grade", "result"),
            When("move_sample", ("If the result of {name} is {asked}, move it to rack {yes}, else to rack {no}.",), "result", "rack"),
        ),
        report=True,
        guarded=True,
    ),
    Domain(
        "post",
        "Post",
        Thing("parcels", "parcel", TITLE_NAMES, "label", {"zone": SIDES, "weight": GRADES, "state": ("held", "sent", "lost")}),
        (
            SetById("set_zone", ("Send parcel {id} to zone {value}.",), "zone"),
            FindSet("set_state", ("The parcel {name} is {value}.",), "state"),
            FindSet("set_zone", ("Send the parcel {name} to zone {value}.",), "zone"),
            Add("accept_parcel", ("Accept the parcel {name} for zone {zone}, weight {weight}.",), ("zone", "weight")),
            Remove("return_parcel", ("Return the parcel {name}.",)),
            Each("set_state", ("Mark all parcels for zone {by} as {value}.",), "list_zone", "zone", "state"),
            Link("give_parcel", ("Give the parcel {name} to {other}.", "{other} carries {name}."), "second", "bag", True),
            Most("set_state", ("Mark the heaviest parcel for zone {by} as {value}.",), "list_zone", "zone", "weight", "state"),
        ),
        _person("couriers", "courier", bag=[]),
    ),
    Domain(
        "lighthouse",
        "Lighthouse",
        Thing("lamps", "lamp", TITLE_NAMES, "name", {"color": COLORS, "state": ("on", "off")}),
        (
            SetById("set_state", ("Switch lamp {id} {value}.",), "state"),
            FindSet("set_state", ("Switch the lamp {name} {value}.",), "state"),
            FindSet("set_color", ("Make the lamp {name} {value}.",), "color"),
        ),
    ),
)
