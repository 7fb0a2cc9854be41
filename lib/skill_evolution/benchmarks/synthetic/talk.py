"""What the invented speakers tell of themselves: sentence patterns.

Slots: {S} the speaker, {P} "her" or "his", {x} and {y} invented values, {a} and {b} options.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Fact:
    """A fact of one value.

    `topic` is a thing that both the question and the conversation name, and that may be mentioned again; `opening` is
    what the other speaker asks first, where the turn is an answer.
    """

    pool: str
    topic: str
    turn: str
    question: str
    opening: str = ""


@dataclass(frozen=True)
class Items:
    """A list: turns that tell one item and share words with the question, one that shares none, one with two items.

    No other pattern tells of the same occasion, so that the list is complete.
    """

    pool: str
    question: str
    turns: tuple[str, str]
    plain: str
    both: str


# A keyword of the question stands in the turn in the same form.
DIRECT = (
    Fact("craft", "workshop", "I've joined a weekend workshop, and we are learning {x} from scratch.",
         "What is {S} learning at the weekend workshop?"),
    Fact("gift", "birthday", "My grandmother surprised me on my birthday with a {x}.",
         "What did {S} receive from {P} grandmother for {P} birthday?"),
    Fact("reason", "flat", "In the end we left our flat because of {x}.", "Why did {S} leave the flat?"),
    Fact("role", "village theatre", "The people at the village theatre have asked me to be their {x}, and I said yes.",
         "What is {S}'s position at the village theatre?"),
    Fact("flower", "wedding", "At the wedding, the tent was decorated with {x} from end to end.",
         "Which flowers was the tent at {S}'s wedding decorated with?"),
    Fact("colour", "kitchen cupboards", "I spent all Sunday with a brush, and the kitchen cupboards are {x} now.",
         "What colour are the kitchen cupboards of {S}?"),
    Fact("dish", "neighbourhood potluck", "For the neighbourhood potluck I cooked {x}, and not a crumb was left.",
         "Which dish did {S} cook for the neighbourhood potluck?"),
    Fact("object", "attic", "My uncle has filled his whole attic with {x}, shelf after shelf.",
         "What does {S}'s uncle keep in the attic?"),
    Fact("job", "sister", "My sister works as a {x} these days.", "What does the sister of {S} work as?"),
    Fact("disaster", "picnic", "Our picnic at the reservoir was ruined by {x}.",
         "What ruined the picnic of {S} at the reservoir?"),
    Fact("sport", "leisure centre", "On Mondays I go to the leisure centre for {x}.",
         "Which sport does {S} do at the leisure centre?"),
    Fact("food", "harbour market", "I always come home from the harbour market with {x}.",
         "What does {S} always buy at the harbour market?"),
)  # fmt: skip

# As above, but the longest words of the question stand nowhere: its shorter words have to be searched for as well.
LATER_WORD = (
    Fact("dish", "inn", "On Fridays I help out at the inn, where I cook {x}.",
         "Which speciality does {S} regularly cook at the inn?"),
    Fact("role", "zoo", "The zoo has made me its {x}, and I still can't believe it.",
         "Which responsibility was {S} entrusted with at the zoo?"),
    Fact("gift", "pier", "On the pier I picked up a {x} that belonged to nobody.",
         "Which ownerless object did {S} discover on the pier?"),
    Fact("animal", "barn", "Our barn has a {x} in it now, and it seems to like it there.",
         "What unexpected inhabitant does {S}'s barn have?"),
)  # fmt: skip

# The question's keywords stand in the turn before the answer.
ADJACENT = (
    Fact("pet_name", "puppy", "After long debates it is {x}.", "What is the name of {S}'s puppy?",
         "So you brought the puppy home! Have you decided on a name?"),
    Fact("dish", "dinner party", "I served {x}, and everyone wanted more.",
         "What was the main course at {S}'s dinner party?",
         "That dinner party must have been a lot of work. What was the main course?"),
    Fact("gift", "farewell present", "They handed me a {x} with all their signatures on it.",
         "Which farewell present did {S} get from {P} colleagues?", "Did your colleagues give you a farewell present?"),
    Fact("subject", "evening class", "I went for {x}, it has always been on my list.",
         "Which evening class did {S} pick at the community college?",
         "Which evening class did you pick at the community college?"),
    Fact("plant", "balcony", "We have {x} out there, which means watering twice a day.",
         "What is {S} growing on the balcony?", "What are you growing on the balcony this year?"),
    Fact("reason", "coast", "It was {x} in the end.", "Why did {S}'s family move away from the coast?",
         "Why did your family move away from the coast?"),
    Fact("feeling", "premiere", "There was {x} in me, nothing else.",
         "What did {S} feel when the curtain rose at the premiere?",
         "How did you feel when the curtain rose at the premiere?"),
    Fact("instrument", "school orchestra", "Mine was the {x}, much to the grief of my parents.",
         "What did {S} play in the school orchestra?", "What did you play in the school orchestra?"),
    Fact("job", "factory", "He has retrained as a {x}.", "What has {S}'s brother become since the factory closed?",
         "What does your brother do since the factory closed?"),
    Fact("animal", "lighthouse cottage", "A {x} followed me everywhere I went.",
         "Which animal kept {S} company at the lighthouse cottage?",
         "Did you have any company at the lighthouse cottage?"),
)  # fmt: skip

# The question has its keywords in other forms than the turn.
INFLECTED = (
    Fact("animal", "", "We are adopting a {x}, so the house won't be quiet any more.",
         "Which creature has {S} adopted?"),
    Fact("plant", "", "I harvested {x} just before the frost.", "What did {S} harvest?"),
    Fact("object", "", "I have hoarded {x} since I was nine, the cellar is full.", "What has {S} been hoarding?"),
    Fact("subject", "", "I've been studying {x} every night after dinner.", "What does {S} study?"),
    Fact("gift", "", "I raffled off a {x} to pay for the repairs.", "What did {S} raffle off?"),
    Fact("food", "", "I've been sampling {x} on the ferry, what a treat.", "What did {S} sample?"),
    Fact("craft", "neighbour", "My neighbour has been tutoring me in {x}.", "What is {S} being tutored in?"),
    Fact("role", "", "They have promoted me to {x} at last.", "Which position did {S}'s promotion bring?"),
    Fact("job", "cousin", "My cousin is apprenticed to a {x} now.",
         "What trade is the apprenticeship of {S}'s cousin in?"),
)  # fmt: skip

# The turn says it in words that the question doesn't have, so a search for those finds nothing.
REMOTE = (
    Fact("sport", "", "Three times a week I get up early for {x}, it's how I keep in shape.", "How does {S} exercise?"),
    Fact("feeling", "", "Standing on top of the mountain at last, I was filled with {x}.",
         "What emotion overcame {S} upon reaching the summit?"),
    Fact("disaster", "", "Right after we got married, {x} kept us from setting off on our trip for two days.",
         "What mishap delayed {S}'s honeymoon?"),
    Fact("food", "", "My pantry is never without {x}, whatever the season.", "Which groceries does {S} always stock?"),
    Fact("colour", "", "I gave my old bicycle a new coat of paint, so it's {x} now.", "What shade is {S}'s bike?"),
)  # fmt: skip

# The verb as it is told and as the question has it, and what was done; its last noun is the topic.
EVENTS = (
    ("ran", "run", "the charity marathon"), ("visited", "visit", "the planetarium"),
    ("opened", "open", "the little bakery"), ("repaired", "repair", "the sailing boat"),
    ("performed", "perform", "at the jazz cellar"), ("planted", "plant", "the cherry tree"),
    ("graduated", "graduate", "from nursing school"), ("sold", "sell", "the old caravan"),
    ("finished", "finish", "the quilt"), ("climbed", "climb", "the bell tower"), ("met", "meet", "the mayor"),
    ("painted", "paint", "the garden fence"), ("lost", "lose", "my wallet on the tram"),
    ("won", "win", "the spelling contest"), ("hosted", "host", "the family reunion"),
    ("donated", "donate", "blood at the clinic"), ("attended", "attend", "the poetry slam"),
    ("photographed", "photograph", "the eclipse"), ("moved", "move", "into the attic flat"),
    ("baked", "bake", "the anniversary cake"), ("tuned", "tune", "the church organ"),
    ("rescued", "rescue", "an injured owl"), ("launched", "launch", "the podcast"),
    ("renewed", "renew", "my driving licence"),
)  # fmt: skip
# Days by which another event is dated.
ANCHORS = (
    "got my new glasses", "had my wisdom tooth out", "handed in my notice", "signed the lease for the studio",
    "passed my driving test", "came home from hospital",
)  # fmt: skip
AFTER = (("the day after", 1), ("two days after", 2), ("the day before", -1))
PLANS = (
    "start the pastry course", "travel to the fjords", "exhibit the watercolours", "take the pilot exam",
    "open the repair shop", "host the street festival",
)  # fmt: skip

LISTS = (
    Items("instrument", "Which instruments has {S} borrowed from the music library?",
          ("Another instrument that I borrowed from the music library is the {x}.",
           "From all the instruments at the music library I've borrowed the {x}."),
          "The place that lends out violins and drums like novels gave me a {x} to take home.",
          "The instruments I borrowed from the music library are {x} and {y}."),
    Items("craft", "Which crafts has {S} taught at the summer camp?",
          ("Of all crafts it was {x} that I taught at the summer camp this time.",
           "One of the crafts I taught at the summer camp was {x}."),
          "The kids in the tents by the lake begged me for lessons in {x}, so I gave some.",
          "The crafts that I taught at the summer camp were {x} and {y}."),
    Items("animal", "Which animals has {S} looked after at the shelter?",
          ("Of all the animals at the shelter I looked after a {x}.",
           "They have so many animals at the shelter, this time I looked after a {x}."),
          "The home for abandoned pets had me bottle-feed a {x}.",
          "The animals that I looked after at the shelter were {x} and {y}."),
    Items("plant", "Which crops does {S} grow on the allotment?",
          ("On the allotment the crops that I grow this year are {x}.",
           "The crop that I grow on the sunny side of the allotment is {x}."),
          "My little plot of land behind the railway line is full of {x}.",
          "The crops that I grow on the allotment are {x} and {y}."),
    Items("sport", "Which sports has {S} tried with {P} colleagues?",
          ("The latest of the sports that my colleagues and I have tried is {x}.",
           "Of all sports it was {x} that my colleagues and I tried on our day out."),
          "The people from my office dragged me along to {x}, and I'm still sore.",
          "The sports that my colleagues and I have tried are {x} and {y}."),
    Items("subject", "Which online courses has {S} finished?",
          ("I've finished one of my online courses, the one on {x}.",
           "Another online course is finished, this time {x}."),
          "I've got my certificate for the video lectures on {x}.",
          "The online courses I've finished are {x} and {y}."),
    Items("object", "Which collections has {S} inherited from {P} godmother?",
          ("One of the collections that I inherited from my godmother is of {x}.",
           "Of my godmother's collections I have also inherited the {x}."),
          "The woman who held me at my christening left me {x} in her will.",
          "The collections that I inherited from my godmother are {x} and {y}."),
    Items("dish", "Which recipes has {S} cooked for the supper club?",
          ("One of the recipes that I cooked for the supper club was {x}.",
           "The supper club wanted one of my recipes again, so I cooked {x}."),
          "Our monthly dinner circle got {x} from me this time, and every plate came back empty.",
          "The recipes that I cooked for the supper club were {x} and {y}."),
)  # fmt: skip

# Places of which three are asked for together, each with its own thing brought home from there.
SOURCES = (
    ("auction", "Nobody at the auction wanted the {x}, so I left with it under my arm."),
    ("lighthouse", "The keeper of the lighthouse parted with a {x} and wouldn't take any money for it."),
    ("monastery", "From the monastery I carried a {x} back in my rucksack."),
    ("flea market", "From the flea market I carried a {x} through the pouring rain."),
    ("shipyard", "An old hand at the shipyard handed me a {x} as a souvenir."),
    ("orchard", "Behind the orchard I picked up a {x} at a farm stall."),
    ("castle", "In the castle I ended up with a {x} as a souvenir."),
    ("vineyard", "Our host at the vineyard presented me with a {x} when we left."),
    ("windmill", "The miller of the windmill handed me a {x}, and it fits well on my shelf."),
    ("chapel", "The bazaar at the chapel ended with a {x} in my bag."),
)

# (topic, question, turn for yes, turn for no)
LIKELY = (
    ("camping", "Would {S} likely enjoy a camping trip?",
     "Camping is my favourite kind of holiday, the colder the better.",
     "Camping is not for me, I dislike every minute in a tent."),
    ("karaoke", "Would {S} probably join a karaoke night?",
     "I adore karaoke, just hand me the microphone.", "Karaoke is something I dread from start to finish."),
    ("snake", "Would {S} likely want a snake as a pet?",
     "Having a snake at home would be a dream, I'm such a fan of reptiles.",
     "I'm scared of any snake, even of a toy one."),
    ("opera", "Would {S} likely go to the opera?",
     "An evening at the opera is the best there is, I adore every minute.",
     "At the opera I was bored to tears, never again."),
    ("ship", "Would {S} probably accept a job on a ship?",
     "On a ship I'm happiest, I dream of a life at sea.", "On a ship I feel sick within minutes, I hate it."),
    ("seafood", "Would {S} likely order the seafood platter?",
     "Seafood is my favourite, I could eat it every day.", "I avoid all seafood, I'm allergic to it."),
    ("kindergarten", "Would {S} likely volunteer at the kindergarten?",
     "Reading to the children at the kindergarten was a delight, I adore small kids.",
     "The noise at the kindergarten gives me a headache, I was so tired of it after an hour."),
    ("rollercoaster", "Would {S} probably ride a rollercoaster?",
     "I love every rollercoaster, the steeper the better.", "I'm afraid of heights, a rollercoaster is the worst."),
    ("big city", "Would {S} likely move to a big city?", "Living in a big city with trams and theatres is my dream.",
     "A big city makes me nervous, I can't stand the crowds."),
    ("detective novel", "Would {S} likely read a detective novel?",
     "On the train a detective novel is my favourite company.", "A detective novel leaves me bored by page ten."),
)  # fmt: skip

# (question with the two options, the options, a turn that speaks for one of them)
PREFERENCES = (
    ("Would {S} rather spend a holiday in a {a} or a {b}?", ("mountain hut", "beach hotel"),
     "Waking up in a {x} is what I adore most on a holiday."),
    ("Would {S} rather give a friend a {a} or a {b}?", ("cookbook", "concert ticket"),
     "A {x} is the best present for a friend, I hope for one myself."),
    ("Would {S} rather go to work by {a} or {b}?", ("bicycle", "motorboat"),
     "Going to work by {x} is my dream, I love the wind."),
    ("Would {S} rather decorate the hall with {a} or {b}?", ("lanterns", "mosaics"),
     "In a hall like this {x} are my favourite, I adore them."),
    ("Would {S} rather spend the evening at a {a} or a {b}?", ("chess club", "dance hall"),
     "I'm happiest when I spend the evening at a {x}."),
    ("Would {S} rather raise {a} or {b}?", ("ducks", "alpacas"), "To raise {x} one day would be a dream come true."),
    ("Would {S} rather retire to a {a} or a {b}?", ("houseboat", "farmhouse"),
     "When I retire, a {x} would be the best of all worlds, I wish for it every day."),
)  # fmt: skip

# (question, turn, answer): an inference by knowledge of the world that no rule on words reaches.
RIDDLES = (
    ("What might {S}'s financial situation be?",
     "We paid for the second holiday flat in cash and still have plenty in the bank.", "Wealthy"),
    ("What political cause would {S} likely support?",
     "Every Saturday I march for clean rivers and against cutting down the old forest.", "Environmental protection"),
    ("What health problem might {S} have?",
     "As soon as the pollen is in the air, I sneeze for weeks on end.", "Hay fever"),
    ("What personality trait would {S} likely be praised for?",
     "I always tell people the truth, even when a lie would have been far easier for me.", "Honesty"),
    ("What country might {S} come from?",
     "As children in Amsterdam we skated to school along the frozen canals.", "The Netherlands"),
)  # fmt: skip
