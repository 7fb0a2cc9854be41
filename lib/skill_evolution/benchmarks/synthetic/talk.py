"""What the invented speakers talk about: sentence patterns with slots, and the word lists that fill the slots."""

# Slots: {x} the answer, {n} a town. The asker's line comes first where a pattern has two lines.
POOLS: dict[str, tuple[str, ...]] = {
    "animal": ("greyhound", "tabby kitten", "tortoise", "parakeet", "pony", "border collie", "hedgehog", "ferret", "canary", "goat"),
    "craft": ("pottery", "bookbinding", "woodcarving", "calligraphy", "glassblowing", "basketry", "silversmithing", "origami"),
    "instrument": ("cello", "banjo", "accordion", "clarinet", "ukulele", "harp", "trombone", "mandolin", "oboe", "zither"),
    "dish": ("lentil stew", "mushroom risotto", "plum dumplings", "fish curry", "pumpkin soup", "walnut pasta", "leek pie",
             "saffron rice"),
    "colour": ("emerald green", "mustard yellow", "navy blue", "coral pink", "charcoal grey", "burgundy red", "pale lilac"),
    "gift": ("copper kettle", "pocket telescope", "wool blanket", "chess set", "silver bracelet", "fountain pen", "picture frame",
             "leather satchel", "wind chime", "tea set"),
    "reason": ("the noisy neighbours", "the long commute", "a leaking roof", "the high rent", "the damp cellar", "a new job offer"),
    "role": ("treasurer", "stage manager", "head gardener", "assistant coach", "night porter", "tour guide", "choir leader"),
    "flower": ("tulips", "dahlias", "foxgloves", "marigolds", "snowdrops", "hollyhocks", "peonies", "bluebells"),
    "feeling": ("nervous relief", "pure calm", "stubborn pride", "quiet gratitude", "childlike wonder"),
    "sport": ("fencing", "rowing", "archery", "badminton", "curling", "bouldering", "judo", "water polo"),
    "pet_name": ("Biscuit", "Pepper", "Marble", "Noodle", "Saffron", "Button", "Thistle", "Domino", "Pickle", "Comet"),
    "food": ("rye bread", "apricot jam", "goat cheese", "smoked trout", "honey cake", "pickled beets", "chestnuts", "pear cider"),
    "plant": ("rosemary", "tomatoes", "runner beans", "strawberries", "sage", "courgettes", "fennel", "radishes"),
    "subject": ("Portuguese", "astronomy", "bookkeeping", "welding", "sign language", "botany", "Icelandic", "first aid"),
    "object": ("stamps", "old postcards", "sea glass", "brass buttons", "vinyl records", "porcelain owls", "railway maps", "fossils"),
    "job": ("ferry pilot", "florist", "tax adviser", "piano tuner", "dentist", "beekeeper", "locksmith", "carpenter"),
    "disaster": ("a burst pipe", "a power cut", "a hailstorm", "a flat tyre", "a lost passport", "a broken oven"),
}

# (pool, turn, question): a keyword of the question stands in the turn in the same form.
DIRECT = (
    ("craft", "I joined a workshop and we are learning {x}.", "What is {S} learning at the workshop?"),
    ("gift", "My grandmother surprised me on my birthday with a {x}.", "What did {S} receive from the grandmother for the birthday?"),
    ("reason", "The landlord was kind, but we left the flat because of {x}.", "What was the reason that {S} left the flat?"),
    ("role", "The committee of the village theatre made me its {x}.", "What position does {S} hold at the village theatre?"),
    ("flower", "For the wedding the whole marquee was full of {x}.", "What flowers decorated the wedding marquee of {S}?"),
    ("colour", "The kitchen cupboards are {x} after two coats of paint.", "What colour are the kitchen cupboards of {S}?"),
    ("dish", "For the neighbourhood potluck I cooked {x}.", "Which dish did {S} bring to the neighbourhood potluck?"),
    ("object", "My uncle has an attic packed with {x}, shelf after shelf.", "What does the uncle of {S} store in the attic?"),
    ("job", "My sister passed her exam and works as a {x} these days.", "What is the job of the sister of {S}?"),
    ("disaster", "Our picnic at the reservoir was ruined by {x}.", "What ruined the picnic of {S} at the reservoir?"),
    ("sport", "The leisure centre offers {x} on Mondays and it keeps me fit.", "Which sport does {S} practise at the leisure centre?"),
    ("food", "The stall at the harbour market sells wonderful {x}.", "What does {S} buy at the harbour market stall?"),
)  # fmt: skip

# (pool, asking turn, answering turn, question): the question's keywords stand in the turn before the answer.
ADJACENT = (
    ("pet_name", "You brought the puppy home? Have you decided on a name?", "After long debates it is {x}.", "What is the name of the puppy of {S}?"),
    ("dish", "That dinner party must have been work. What was the main course?", "I served {x}, and not a spoonful was left.", "What was the main course at the dinner party of {S}?"),
    ("gift", "Did your colleagues give you a farewell present?", "They handed me a {x} with all their signatures.", "What farewell present did the colleagues give {S}?"),
    ("subject", "Which evening class did you pick at the community college?", "I went for {x}, it has always been on my list.", "Which evening class did {S} pick at the community college?"),
    ("plant", "What is growing on the balcony this year?", "Mostly {x}, and they need water twice a day.", "What is {S} growing on the balcony?"),
    ("reason", "Why did the family move away from the coast?", "It was {x} in the end.", "Why did the family of {S} move away from the coast?"),
    ("feeling", "How did it feel when the curtain rose at the premiere?", "There was {x} all over my face.", "What did {S} feel at the premiere?"),
    ("instrument", "What did you play in the school orchestra?", "Mine was the {x}, to the grief of all.", "What did {S} play in the school orchestra?"),
    ("job", "What does your brother do since the factory closed?", "He retrained as a {x}.", "What does the brother of {S} do since the factory closed?"),
    ("animal", "Who kept you company in the lighthouse cottage?", "A {x} followed me everywhere.", "Who kept {S} company in the lighthouse cottage?"),
)  # fmt: skip

# (pool, turn, question): the question has its keywords in other forms than the turn.
INFLECTED = (
    ("animal", "We adopted a {x} and the house is lively.", "What was {S} adopting?"),
    ("plant", "I harvested {x} before the frost.", "What is {S} harvesting?"),
    ("object", "I have collected {x} for ages.", "What does {S} collect?"),
    ("subject", "I have studied {x} every evening.", "What does {S} study?"),
    ("gift", "I auctioned a {x} to pay for the repairs.", "Which thing did {S} auction?"),
    ("food", "I sampled {x} on the ferry.", "What was {S} sampling?"),
    ("craft", "My neighbour tutored me in {x}.", "What does the neighbour tutor {S} in?"),
    ("role", "They promoted me to {x}.", "To which position was the promotion of {S}?"),
    ("job", "My cousin apprenticed with a {x}.", "Where is the cousin of {S} doing an apprenticeship?"),
)  # fmt: skip

# (pool, turn, question): no word of the question but the name stands anywhere near; out of reach for a search by words.
REMOTE = (
    ("sport", "Three mornings a week it is {x} before breakfast.", "How does {S} exercise?"),
    ("feeling", "Standing up there I was filled with {x}.", "What emotion overcame {S} on the summit?"),
    ("disaster", "Of all days, {x} hit us on the ring road.", "What mishap delayed the honeymoon of {S}?"),
    ("food", "My pantry would be sad without {x}.", "What groceries does {S} always stock?"),
    ("colour", "The old bicycle is {x} and shines again.", "What shade did {S} respray the vehicle?"),
)  # fmt: skip

# (past, question form): what happened at a time; the first uses the question's words, the second keeps their stems.
EVENTS = (
    ("ran the charity marathon", "run the charity marathon"), ("visited the planetarium", "visit the planetarium"),
    ("opened the little bakery", "open the little bakery"), ("repaired the sailing boat", "repair the sailing boat"),
    ("performed at the jazz cellar", "perform at the jazz cellar"), ("planted the cherry tree", "plant the cherry tree"),
    ("graduated from nursing school", "graduate from nursing school"), ("sold the old caravan", "sell the old caravan"),
    ("finished the quilt", "finish the quilt"), ("climbed the bell tower", "climb the bell tower"),
    ("met the mayor", "meet the mayor"), ("painted the garden fence", "paint the garden fence"),
    ("lost a wallet on the tram", "lose a wallet on the tram"), ("won the spelling contest", "win the spelling contest"),
    ("hosted the family reunion", "host the family reunion"), ("donated blood at the clinic", "donate blood at the clinic"),
    ("attended the poetry slam", "attend the poetry slam"), ("photographed the eclipse", "photograph the eclipse"),
    ("moved into the attic flat", "move into the attic flat"), ("baked the anniversary cake", "bake the anniversary cake"),
    ("tuned the church organ", "tune the church organ"), ("rescued an injured owl", "rescue an injured owl"),
    ("launched the podcast", "launch the podcast"), ("renewed the driving licence", "renew the driving licence"),
)  # fmt: skip
PLANS = (
    ("start the pastry course", "start the pastry course"), ("travel to the fjords", "travel to the fjords"),
    ("exhibit the watercolours", "exhibit the watercolours"), ("take the pilot exam", "take the pilot exam"),
    ("open the repair shop", "open the repair shop"), ("host the street festival", "host the street festival"),
)  # fmt: skip

# (pool, question, turns): one item of a list a turn, in different sessions; the last turn's form differs.
LISTS = (
    ("instrument", "Which instruments has {S} tried?", ("Of all instruments I tried the {x} first.", "I borrowed one of the school instruments, the {x}.", "My newest instrument is the {x}.")),
    ("craft", "Which crafts has {S} learned?", ("Among the crafts I learned {x} came easily.", "There are crafts that calm me, {x} above all.", "The craft of the month is {x}.")),
    ("animal", "Which pets has {S} owned?", ("One of the pets I owned was a {x}.", "Pets run in the family, ours was a {x}.", "My pet is a {x}, a real rascal.")),
    ("plant", "Which vegetables and herbs does {S} grow?", ("The herbs I grow are doing fine, {x} first of all.", "Next to the herbs there is a row of {x}.", "A herb for every dish: {x} it is.")),
    ("sport", "Which sports has {S} taken up?", ("Of the sports I have taken up {x} is the hardest.", "Sports on a budget means {x} for me.", "My sport for the winter is {x}.")),
    ("subject", "Which courses has {S} attended?", ("The courses I attended began with {x}.", "One of the library courses was about {x}.", "That course on {x} opened my eyes.")),
    ("object", "Which collections does {S} keep?", ("My collections began with {x}.", "In the hall stand my collections, {x} in front.", "A collection of {x} fills the cellar.")),
    ("dish", "Which recipes has {S} cooked?", ("Of my recipes I cooked {x} first.", "Those recipes from the radio led me to {x}.", "The recipe of the week is {x}.")),
)  # fmt: skip

# Places of which two or three are asked for together, each with its own thing brought home from there.
SOURCES = (
    ("auction", "At the auction nobody wanted the {x}, so it went home with me."),
    ("lighthouse", "The keeper of the lighthouse parted with a {x}."),
    ("monastery", "The gate shop of the monastery had a {x}."),
    ("flea market", "From the flea market I carried a {x} through the rain."),
    ("shipyard", "An old hand at the shipyard passed me a {x}."),
    ("orchard", "Behind the orchard they were giving away a {x}."),
    ("castle", "In the castle shop I could not resist a {x}."),
    ("vineyard", "Our host at the vineyard let me have a {x}."),
    ("windmill", "The miller of the windmill made me a present of a {x}."),
    ("chapel", "The bazaar of the chapel ended with a {x} in my arms."),
)  # fmt: skip

# (question, turn for yes, turn for no)
LIKELY = (
    ("Would {S} likely enjoy a camping trip?", "Camping is my favourite kind of holiday, the colder the better.", "Camping is not for me, I dislike every minute in a tent."),
    ("Would {S} probably join a karaoke night?", "I adore karaoke, hand me the microphone.", "Karaoke is something I dread from start to finish."),
    ("Would {S} likely adopt a snake?", "A snake would be a dream, I am a big fan of reptiles.", "I am scared of any snake, even a toy one."),
    ("Would {S} likely watch an opera?", "The opera is the best evening out, I am always keen to go.", "At the opera I was bored to tears, never again."),
    ("Would {S} probably accept a job on a ship?", "A ship is where I am happiest, I dream of the sea.", "On a ship I feel sick within minutes, I hate it."),
    ("Would {S} likely order the seafood platter?", "Seafood is my favourite, a platter is gone in no time.", "I avoid all seafood, I am allergic to it."),
    ("Would {S} likely volunteer at the kindergarten?", "The kindergarten visit was a delight, I adore small children.", "The kindergarten visit gives me a headache just to recall, I was tired of it."),
    ("Would {S} probably ride a rollercoaster?", "A rollercoaster makes me feel alive, I am such a fan.", "A rollercoaster is the worst idea, I am afraid of heights."),
    ("Would {S} likely move to a big city?", "A big city with trams and theatres is my dream.", "A big city makes me nervous, I cannot stand the crowds."),
    ("Would {S} likely read a detective novel?", "A detective novel is my favourite company on a train.", "A detective novel leaves me bored by page ten."),
)  # fmt: skip

# (question with the two options, turn that speaks for the first one, turn that speaks for the second one)
PREFERENCES = (
    ("Would {S} rather spend a holiday in a {a} or a {b}?", ("mountain hut", "beach hotel"), "Waking up in a {x} is what I adore on holiday."),
    ("Would {S} rather give a friend a {a} or a {b}?", ("cookbook", "concert ticket"), "A {x} is the best present for a friend, I always hope for one."),
    ("Would {S} rather commute by {a} or {b}?", ("bicycle", "motorboat"), "To commute by {x} is my dream."),
    ("Would {S} rather decorate the hall with {a} or {b}?", ("lanterns", "mosaics"), "In a hall {x} are my favourite, I adore them."),
    ("Would {S} rather spend the evening at a {a} or a {b}?", ("chess club", "dance hall"), "An evening at a {x} is when I am happiest."),
    ("Would {S} rather raise {a} or {b}?", ("ducks", "alpacas"), "To raise {x} would be a dream come true."),
    ("Would {S} rather retire to a {a} or a {b}?", ("houseboat", "farmhouse"), "When I retire, a {x} would be the best of all worlds, I wish for it daily."),
)  # fmt: skip

# (question, turn, answer): an inference that no rule on words reaches.
RIDDLES = (
    ("What might the financial situation of {S} be?", "We bought the second holiday flat without a mortgage.", "Wealthy"),
    ("What political cause would {S} likely support?", "Every Saturday I count beetles to save the wetlands.", "Environmental protection"),
    ("What health problem might {S} have?", "Pollen season means tissues in every pocket.", "Hay fever"),
    ("What personality trait would {S} likely be praised for?", "I sorted all the screws in the shed by length.", "Being orderly"),
    ("What country might {S} come from?", "In my childhood we skated to school along the canals.", "The Netherlands"),
)  # fmt: skip

# Distractors: (turn) with a keyword {k} but no answer to its question.
ECHOES = (
    "By the way, somebody mentioned the {k} again and I had to smile.",
    "Funny, my aunt asked about the {k} as well.",
    "I came past a poster with the word {k} on it.",
    "There was a radio feature on the {k}, rather long.",
    "My neighbour tells a story about the {k} to everyone.",
)

OPENINGS = (
    ("Hello {o}, how have you been?", "Busy but fine, {s}. And you?"), ("Hi {o}! Long time no see.", "Hi {s}! Far too long."),
    ("Good to hear from you, {o}.", "Same here, {s}, tell me all."), ("Hey {o}, have you got a minute?", "For you always, {s}."),
)  # fmt: skip
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
    ("We should cook together again.", "Yes, but you peel the onions."),
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
)  # fmt: skip
WEATHERS = ("grey", "foggy", "stormy", "mild", "damp", "windy", "hazy", "frosty")
UTENSILS = ("toaster", "dishwasher", "radiator", "lawnmower", "printer", "doorbell", "kettle", "hairdryer")
DOGS = ("terrier", "spaniel", "poodle", "beagle", "mastiff", "dachshund")
REPLIES = (
    "That is lovely to hear, {s}.", "You do surprise me, {s}.", "I would never have guessed.", "Good for you, {s}!",
    "Now I am a little envious.", "You have earned it.", "Tell me more when we meet.", "That made my day.",
)  # fmt: skip
CAPTIONS = (
    "a photo of a {w} morning over a row of houses", "a photo of a wooden table with two cups", "a photo of a narrow street in {n}",
    "a photo of a window with rain drops", "a photo of a bench under a tree", "a photo of a {v} on a doorstep",
)  # fmt: skip
