"""Small talk between the facts, and the words that fill the slots of all patterns."""

# The answers, by kind; none holds a comma. A kind has as many as a conversation asks for, so that none comes twice.
POOLS: dict[str, tuple[str, ...]] = {
    key: tuple(line.split(", "))
    for key, line in {
        "animal": "greyhound, tabby kitten, tortoise, parakeet, pony, border collie, hedgehog, ferret, canary, goat",
        "craft": (
            "pottery, bookbinding, woodcarving, calligraphy, glassblowing, basketry, "
            "silversmithing, origami, felting, weaving, stonecutting, lacquering"
        ),
        "instrument": "cello, banjo, accordion, clarinet, ukulele, harp, trombone, mandolin, oboe, zither",
        "dish": (
            "lentil stew, mushroom risotto, plum dumplings, fish curry, "
            "pumpkin soup, walnut pasta, leek pie, saffron rice, "
            "barley salad, onion tart, potato gratin, beetroot gnocchi"
        ),
        "colour": "emerald green, mustard yellow, navy blue, coral pink, charcoal grey, burgundy red, pale lilac",
        "gift": (
            "copper kettle, pocket telescope, wool blanket, chess set, silver bracelet, "
            "fountain pen, picture frame, leather satchel, wind chime, tea set, "
            "music box, rocking chair, walking stick, straw hat, pewter mug, "
            "clay vase, spinning top, jigsaw puzzle, paper kite, wooden puppet, "
            "glass paperweight, snow globe, velvet cushion, door knocker, bird cage"
        ),
        "reason": "the noisy neighbours, the long commute, a leaking roof, the rent, the damp cellar, a job abroad",
        "role": "treasurer, stage manager, head gardener, assistant coach, night porter, tour guide, choir leader",
        "flower": "tulips, dahlias, foxgloves, marigolds, snowdrops, hollyhocks, peonies, bluebells",
        "feeling": "nervous relief, pure calm, stubborn pride, quiet gratitude, childlike wonder",
        "sport": (
            "fencing, rowing, archery, badminton, curling, bouldering, "
            "judo, water polo, squash, handball, trampolining, cricket"
        ),
        "pet_name": "Biscuit, Pepper, Marble, Noodle, Saffron, Button, Thistle, Domino, Pickle, Comet",
        "food": "rye bread, apricot jam, goat cheese, smoked trout, honey cake, pickled beets, chestnuts, pear cider",
        "plant": "rosemary, tomatoes, runner beans, strawberries, sage, courgettes, fennel, radishes",
        "subject": (
            "Portuguese, astronomy, bookkeeping, welding, sign language, botany, "
            "Icelandic, economics, geology, marketing, Swahili, first aid"
        ),
        "object": "stamps, old postcards, sea glass, brass buttons, records, porcelain owls, railway maps, fossils",
        "job": "ferry pilot, florist, tax adviser, piano tuner, dentist, beekeeper, locksmith, carpenter",
        "disaster": "a burst pipe, a power cut, a hailstorm, a flat tyre, a lost passport, a broken oven",
    }.items()
}

# Distractors: (turn) with a keyword {k} but no answer to its question.
ECHOES = (
    "By the way, somebody mentioned the {k} again and I had to smile.",
    "Funny, my aunt asked about the {k} as well.",
    "I came past a poster with the word {k} on it.",
    "There was a radio feature on the {k}, rather long.",
    "My neighbour tells a story about the {k} to everyone.",
)

OPENINGS = (
    ("Hello {o}, how have you been?", "Busy but fine, {s}. And you?"),
    ("Hi {o}! Long time no see.", "Hi {s}! Far too long."),
    ("Good to hear from you, {o}.", "Same here, {s}, tell me all."),
    ("Hey {o}, have you got a minute?", "For you always, {s}."),
)
CHATTER = (
    ("The {w} weather does not want to leave {n}.", "Here the sky has been {w} too."),
    ("I slept badly, the {v} next door barked.", "Earplugs, I tell you."),
    ("My knees complain after the stairs at {n}.", "Mine complain without any stairs."),
    ("Have you seen the road works near {n}?", "They have been digging there since spring."),
    ("The bus to {n} was late once more.", "Mine did not come at all."),
    ("I tried to fix the {u} with tape.", "Tape mends everything for an hour."),
    ("The {u} gave up on Monday.", "Then it lasted longer than ours."),
    ("I owe you a coffee, do not forget.", "I never forget a coffee."),
    ("My phone drops every call in {n}.", "The hills there swallow the signal."),
    ("A parcel for you landed on my doorstep.", "Keep it dry, I will fetch it."),
    ("I forgot my umbrella in {n}.", "Somebody is dry because of you."),
    ("The queue at the post office was endless.", "I read half a chapter in mine."),
    ("The {v} across the street had a litter.", "I can hear them from here."),
    ("I am trying to drink less coffee.", "Tell me when it works."),
    ("The heating rattles like a {u}.", "Ours hums, which is hardly better."),
    ("I found a {w} scarf on the bench.", "Hang it on the fence, the owner will come."),
    ("Work has been a mountain of paper.", "Mine is a mountain of messages."),
    ("The lights went out in half of {n}.", "We ate by candle, it was pleasant."),
    ("I counted six magpies on the lawn.", "Six stands for gold, they say."),
    ("The lift is broken again.", "Good for the legs, bad for the mood."),
    ("I have a song stuck in my head.", "Hum it and pass it on."),
    ("Somebody parked across our gate.", "Leave a polite note, a very short one."),
    ("My calendar is a mess.", "Use a pencil, it forgives."),
)
WEATHERS = ("grey", "foggy", "stormy", "mild", "damp", "windy", "hazy", "frosty")
UTENSILS = ("toaster", "dishwasher", "radiator", "lawnmower", "printer", "doorbell", "kettle", "hairdryer")
DOGS = ("terrier", "spaniel", "poodle", "beagle", "mastiff", "dachshund")
REPLIES = (
    "That is lovely to hear, {s}.",
    "You do surprise me, {s}.",
    "I would never have guessed.",
    "Good for you, {s}!",
    "Now I am a little envious.",
    "You have earned it.",
    "Tell me more when we meet.",
    "That made my day.",
)
CAPTIONS = (
    "a photo of a {w} morning over a row of houses",
    "a photo of a wooden table with two cups",
    "a photo of a narrow street in {n}",
    "a photo of a window with rain drops",
    "a photo of a bench under a tree",
    "a photo of a {v} on a doorstep",
)
