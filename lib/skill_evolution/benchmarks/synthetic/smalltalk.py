"""Small talk between the facts, and the words that fill the slots of all patterns."""

# The answers, by kind; none holds a comma. A kind has as many as a conversation asks for, so that none comes twice.
_POOLS = """
    animal: greyhound, tabby kitten, tortoise, parakeet, pony, border collie, hedgehog, ferret, canary, goat, donkey,
    cockatoo, lamb, raven;
    craft: pottery, bookbinding, woodcarving, calligraphy, glassblowing, basketry, silversmithing, origami, felting,
    weaving, stonecutting, lacquering;
    instrument: cello, banjo, accordion, clarinet, ukulele, harp, trombone, mandolin, oboe, zither;
    dish: lentil stew, mushroom risotto, plum dumplings, fish curry, pumpkin soup, walnut pasta, leek pie, saffron
    rice, barley salad, onion tart, potato gratin, beetroot gnocchi;
    colour: emerald green, mustard yellow, navy blue, coral pink, charcoal grey, burgundy red, pale lilac;
    gift: copper kettle, pocket telescope, wool blanket, chess set, silver bracelet, fountain pen, picture frame,
    leather satchel, wind chime, tea set, music box, rocking chair, walking stick, straw hat, pewter mug, clay vase,
    spinning top, jigsaw puzzle, paper kite, wooden puppet, glass paperweight, snow globe, velvet cushion, door
    knocker, bird cage, barometer, sundial;
    reason: the noisy neighbours, the long commute, the rising rent, the constant damp, the steep stairs;
    role: treasurer, stage manager, head gardener, assistant coach, night porter, tour guide, choir leader;
    flower: tulips, dahlias, foxgloves, marigolds, snowdrops, hollyhocks, peonies, bluebells;
    feeling: nervous relief, pure calm, stubborn pride, quiet gratitude, childlike wonder;
    sport: fencing, rowing, archery, badminton, curling, bouldering, judo, water polo, squash, handball, trampolining,
    cricket;
    pet_name: Biscuit, Pepper, Marble, Noodle, Saffron, Button, Thistle, Domino, Pickle, Comet;
    food: rye bread, apricot jam, goat cheese, smoked trout, honey cake, pickled beets, chestnuts, pear cider;
    plant: rosemary, tomatoes, runner beans, strawberries, sage, courgettes, fennel, radishes, leeks, spinach, peas,
    chives;
    subject: Portuguese, astronomy, bookkeeping, welding, sign language, botany, Icelandic, economics, geology,
    marketing, Swahili, first aid;
    object: stamps, old postcards, sea glass, brass buttons, records, porcelain owls, railway maps, fossils, toy
    soldiers, dried butterflies, thimbles, marbles;
    job: ferry pilot, florist, tax adviser, piano tuner, dentist, beekeeper, locksmith, carpenter;
    disaster: a hailstorm, a flat tyre, a lost car key, a thunderstorm, a broken windscreen, a landslide
"""
POOLS: dict[str, tuple[str, ...]] = {
    key: tuple(items.split(", ")) for key, items in (kind.split(": ") for kind in " ".join(_POOLS.split()).split("; "))
}

# What is said to a fact, good or bad, of the speaker {s}.
REPLIES = (
    "Really, {s}? I had no idea.", "You always have something new to tell, {s}.", "I didn't see that coming!",
    "Ha, that sounds just like you, {s}.", "Thanks for telling me, {s}.", "I can picture that very well.",
    "You'll have to tell me more when we meet.", "Well, there is never a dull moment with you.", "Fair enough, {s}.",
    "Oh, I must tell my sister-in-law about that.", "I see. And the rest of the week?", "Good to know, {s}.",
    "Now that surprises me.",
)  # fmt: skip
# Distractors: a turn with the topic {k} of a question but no answer to it.
ECHOES = (
    "By the way, somebody mentioned the {k} again and I had to smile.", "Funny, my aunt was asking me about the {k}.",
    "I keep thinking about what you said about the {k}.",
    "I told my neighbour about the {k}, and now the whole street knows.",
    "We really should talk about the {k} when there is more time.",
)  # fmt: skip
# Around a fact, now and then.
LEADS = ("", "", "", "", "Guess what! ", "I wanted to tell you. ", "A bit of news from me. ", "Listen to this. ")
TAILS = (
    "",
    "",
    " It went better than I had feared.",
    " I wish you had been there.",
    " I still can't quite believe it.",
)

OPENINGS = (
    ("Hello {o}, how have you been?", "Busy but fine, {s}. And you?"),
    ("Hi {o}! It's been a while.", "Hi {s}! Far too long."),
    ("It's good to hear from you, {o}.", "You too, {s}. Tell me everything."),
    ("Hey {o}, have you got a minute?", "Always for you, {s}."),
)
CHATTER = (
    ("The {w} weather in {n} just won't change.", "It has been {w} here, too."),
    ("I slept badly, because the {v} next door kept barking.", "Earplugs help, believe me."),
    ("My knees hurt after all those stairs in {n}.", "Mine hurt without any stairs."),
    ("Have you seen the roadworks near {n}?", "They have been digging there since spring."),
    ("The bus to {n} was late again.", "Mine didn't come at all."),
    ("I tried to fix the {u} with tape.", "Tape fixes everything for an hour."),
    ("Our {u} finally gave up.", "Then it lasted longer than ours."),
    ("I still owe you a coffee.", "I never forget a coffee."),
    ("My phone drops every call in {n}.", "The hills there swallow the signal."),
    ("There's a parcel for you on my doorstep.", "Keep it dry, I'll come and get it."),
    ("I left my umbrella in {n}.", "Then somebody is dry because of you."),
    ("The queue at the post office was endless.", "I read half a chapter in mine."),
    ("The {v} across the street has had puppies.", "I can hear them from here."),
    ("I'm trying to drink less coffee.", "Tell me if it works."),
    ("Our heating rattles like a broken {u}.", "Ours hums, which is hardly better."),
    ("I found a scarf on a bench this {w} morning.", "Hang it on the fence, the owner will come back."),
    ("There's a mountain of paper waiting for me at work.", "For me it's a mountain of messages."),
    ("The lights went out in half of {n}.", "We had candles, it was rather nice."),
    ("I counted six magpies on the lawn.", "Six stands for gold, they say."),
    ("The lift is out of order again.", "That's good for the legs and bad for the mood."),
    ("I have a song stuck in my head.", "Hum it, then I'll have it too."),
    ("Somebody has parked in front of our gate again.", "Leave a polite note, a very short one."),
    ("My calendar is a complete mess.", "Use a pencil, that way you can change your mind."),
)  # fmt: skip
WEATHERS = ("grey", "foggy", "stormy", "mild", "damp", "windy", "hazy", "frosty")
UTENSILS = ("toaster", "dishwasher", "radiator", "lawnmower", "printer", "doorbell", "kettle", "hairdryer")
DOGS = ("terrier", "spaniel", "poodle", "beagle", "mastiff", "dachshund")
CAPTIONS = (
    "a photo of a {w} morning over a row of houses", "a photo of a wooden table with two cups",
    "a photo of a narrow street in {n}", "a photo of a window with rain drops", "a photo of a bench under a tree",
    "a photo of a {v} on a doorstep",
)  # fmt: skip
