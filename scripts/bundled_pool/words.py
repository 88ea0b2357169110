"""The closed vocabulary of the bundled pool; small, so that a tokenizer of about a thousand words holds it whole."""

TITLES = (  # noqa: SIM905  (a hundred quotes more would hide the words)
    "amber anchor apple arrow basil beacon birch bloom breeze bridge candle canyon cedar clover comet copper coral crystal "
    "dawn delta diamond ember falcon feather fern flame forest frost garnet glacier granite harvest hazel indigo island ivory "
    "jasmine juniper lagoon lantern laurel lemon lotus magnet maple marble meadow mirror nectar nova oasis olive onyx opal "
    "orchid pearl pepper pine prairie quartz raven ribbon river saffron shadow silver summit sunset tiger topaz tulip velvet "
    "violet walnut willow winter"
).split()
PEOPLE = (  # noqa: SIM905
    "ada amir anna boris carla chen clara dario dora elena emil eva felix fatima greta hana hugo ines ivan jana jonas kai "
    "karim lena leo luca maria marta mei mila nina noah nora omar oscar paula petra rosa ruth samir sara simon sofia tara "
    "theo tomas vera victor yuki zara"
).split()
SIDES = ("north", "south", "east", "west")
COLORS = ("red", "blue", "green", "white")
DAYS = ("monday", "tuesday", "wednesday", "thursday")
LEVELS = ("low", "mid", "high")
IDS = tuple(f"{letter}{digit}" for letter in "bcdfghjkmprt" for digit in "0123456789")
