"""What the invented speakers talk about: sentence patterns with the slots {S}, {x}, {a} and {b}."""

# (pool, turn, question): a keyword of the question stands in the turn in the same form.
DIRECT = (
    ("craft", "I joined a workshop and we are learning {x}.", "What is {S} learning at the workshop?"),
    (
        "gift",
        "My grandmother surprised me on my birthday with a {x}.",
        "What did {S} receive from the grandmother for the birthday?",
    ),
    (
        "reason",
        "The landlord was kind, but we left the flat because of {x}.",
        "What was the reason that {S} left the flat?",
    ),
    (
        "role",
        "The committee of the village theatre made me its {x}.",
        "What position does {S} hold at the village theatre?",
    ),
    ("flower", "For the wedding the marquee was full of {x}.", "What flowers decorated the wedding marquee of {S}?"),
    (
        "colour",
        "The kitchen cupboards are {x} after two coats of paint.",
        "What colour are the kitchen cupboards of {S}?",
    ),
    ("dish", "For the neighbourhood potluck I cooked {x}.", "Which dish did {S} bring to the neighbourhood potluck?"),
    (
        "object",
        "My uncle has an attic packed with {x}, shelf after shelf.",
        "What does the uncle of {S} store in the attic?",
    ),
    ("job", "My sister works as a {x} these days.", "What is the job of the sister of {S}?"),
    ("disaster", "Our picnic at the reservoir was ruined by {x}.", "What ruined the picnic of {S} at the reservoir?"),
    ("sport", "At the leisure centre it is {x} on Mondays.", "Which sport does {S} practise at the leisure centre?"),
    ("food", "The stall at the harbour market sells wonderful {x}.", "What does {S} buy at the harbour market stall?"),
)

# As above, but the longest words of the question stand nowhere: its shorter words have to be searched for as well.
LATER_WORD = (
    ("dish", "At the inn I cook {x} for the guests.", "Which vegetarian speciality does {S} cook at the inn?"),
    ("role", "The zoo has made me its {x}.", "Which responsible position does {S} have at the zoo?"),
    ("gift", "On the pier there was a {x} for me.", "Which forgotten belongings did {S} discover on the pier?"),
    ("animal", "In the barn lives a {x}.", "Which surprising inhabitant does the barn of {S} have?"),
)

# (pool, asking turn, answering turn, question): the question's keywords stand in the turn before the answer.
ADJACENT = (
    (
        "pet_name",
        "You brought the puppy home? Have you decided on a name?",
        "After long debates it is {x}.",
        "What is the name of the puppy of {S}?",
    ),
    (
        "dish",
        "That dinner party must have been work. What was the main course?",
        "I served {x} to everyone.",
        "What was the main course at the dinner party of {S}?",
    ),
    (
        "gift",
        "Did your colleagues give you a farewell present?",
        "They handed me a {x} with all their signatures.",
        "What farewell present did the colleagues give {S}?",
    ),
    (
        "subject",
        "Which evening class did you pick at the community college?",
        "I went for {x}, it has always been on my list.",
        "Which evening class did {S} pick at the community college?",
    ),
    (
        "plant",
        "What is growing on the balcony this year?",
        "There are {x}, and they need water twice a day.",
        "What is {S} growing on the balcony?",
    ),
    (
        "reason",
        "Why did the family move away from the coast?",
        "It was {x} in the end.",
        "Why did the family of {S} move away from the coast?",
    ),
    (
        "feeling",
        "How did it feel when the curtain rose at the premiere?",
        "There was {x} all over my face.",
        "What did {S} feel at the premiere?",
    ),
    (
        "instrument",
        "What did you play in the school orchestra?",
        "Mine was the {x}, to the grief of all.",
        "What did {S} play in the school orchestra?",
    ),
    (
        "job",
        "What does your brother do since the factory closed?",
        "He retrained as a {x}.",
        "What does the brother of {S} do since the factory closed?",
    ),
    (
        "animal",
        "Who kept you company in the lighthouse cottage?",
        "A {x} followed me everywhere.",
        "Who kept {S} company in the lighthouse cottage?",
    ),
)

# (pool, turn, question): the question has its keywords in other forms than the turn.
INFLECTED = (
    ("animal", "We adopted a {x} and the house is lively.", "What was {S} adopting?"),
    ("plant", "I harvested {x} before the frost.", "What is {S} harvesting?"),
    ("object", "I have hoarded {x} for ages.", "What is {S} hoarding?"),
    ("subject", "I have studied {x} every evening.", "What does {S} study?"),
    ("gift", "I raffled a {x} to pay for the repairs.", "Which thing was {S} raffling?"),
    ("food", "I sampled {x} on the ferry.", "What was {S} sampling?"),
    ("craft", "My neighbour tutored me in {x}.", "What does the neighbour tutor {S} in?"),
    ("role", "They promoted me to {x}.", "To which position was the promotion of {S}?"),
    ("job", "My cousin apprenticed with a {x}.", "Where is the cousin of {S} doing an apprenticeship?"),
)

# (pool, turn, question): no word of the question but the name stands anywhere near; out of reach for a search by words.
REMOTE = (
    ("sport", "Three mornings a week it is {x} before breakfast.", "How does {S} exercise?"),
    ("feeling", "Standing up there I was filled with {x}.", "What emotion overcame {S} on the summit?"),
    ("disaster", "Of all days, {x} hit us on the ring road.", "What mishap delayed the honeymoon of {S}?"),
    ("food", "My pantry would be sad without {x}.", "What groceries does {S} always stock?"),
    ("colour", "The old bicycle is {x} and shines again.", "What shade did {S} respray the vehicle?"),
)

# (past, question form): what happened at a time; the first uses the question's words, the second keeps their stems.
EVENTS = (
    ("ran the charity marathon", "run the charity marathon"),
    ("visited the planetarium", "visit the planetarium"),
    ("opened the little bakery", "open the little bakery"),
    ("repaired the sailing boat", "repair the sailing boat"),
    ("performed at the jazz cellar", "perform at the jazz cellar"),
    ("planted the cherry tree", "plant the cherry tree"),
    ("graduated from nursing school", "graduate from nursing school"),
    ("sold the old caravan", "sell the old caravan"),
    ("finished the quilt", "finish the quilt"),
    ("climbed the bell tower", "climb the bell tower"),
    ("met the mayor", "meet the mayor"),
    ("painted the garden fence", "paint the garden fence"),
    ("lost a wallet on the tram", "lose a wallet on the tram"),
    ("won the spelling contest", "win the spelling contest"),
    ("hosted the family reunion", "host the family reunion"),
    ("donated blood at the clinic", "donate blood at the clinic"),
    ("attended the poetry slam", "attend the poetry slam"),
    ("photographed the eclipse", "photograph the eclipse"),
    ("moved into the attic flat", "move into the attic flat"),
    ("baked the anniversary cake", "bake the anniversary cake"),
    ("tuned the church organ", "tune the church organ"),
    ("rescued an injured owl", "rescue an injured owl"),
    ("launched the podcast", "launch the podcast"),
    ("renewed the driving licence", "renew the driving licence"),
)
PLANS = (
    ("start the pastry course", "start the pastry course"),
    ("travel to the fjords", "travel to the fjords"),
    ("exhibit the watercolours", "exhibit the watercolours"),
    ("take the pilot exam", "take the pilot exam"),
    ("open the repair shop", "open the repair shop"),
    ("host the street festival", "host the street festival"),
)

# (pool, question, turns): one item of a list a turn, in different sessions;
# the last turn has another form of the keyword.
LISTS = (
    (
        "instrument",
        "Which instruments has {S} tried?",
        (
            "Of all instruments it was {x} that I tried first.",
            "From the school instruments I borrowed the {x}.",
            "My newest instrument is the {x}.",
        ),
    ),
    (
        "craft",
        "Which crafts has {S} tried?",
        (
            "Of all crafts it is {x} that calms me.",
            "Among crafts it was {x} for me this spring.",
            "The craft of the month is {x}.",
        ),
    ),
    (
        "animal",
        "Which pets has {S} owned?",
        (
            "Of all pets it was {x} that I owned first.",
            "Among pets it had to be a {x} for me.",
            "My pet is a {x}, a real rascal.",
        ),
    ),
    (
        "plant",
        "Which crops has {S} raised?",
        ("Of all crops it is {x} that I trust.", "For crops we have {x} by the wall.", "My crop of the year is {x}."),
    ),
    (
        "sport",
        "Which sports has {S} taken up?",
        (
            "Of all sports it is {x} that I took up first.",
            "In sports I am down to {x} these days.",
            "My sport is {x} until spring.",
        ),
    ),
    (
        "subject",
        "Which courses has {S} booked?",
        (
            "Of all courses it was {x} that I booked first.",
            "One of the library courses was about {x}.",
            "The evening course is {x}, and I am hooked.",
        ),
    ),
    (
        "object",
        "Which collections does {S} keep?",
        (
            "My collections are of {x} by now.",
            "In my collections there are {x} as well.",
            "A collection of {x} is on the shelf.",
        ),
    ),
    (
        "dish",
        "Which recipes has {S} cooked?",
        (
            "Of all recipes it was {x} that I cooked first.",
            "My recipes are down to {x} on weekdays.",
            "The recipe of the week is {x}.",
        ),
    ),
)

# Places of which two or three are asked for together, each with its own thing brought home from there.
SOURCES = (
    ("auction", "At the auction nobody wanted the {x}, so it went home with me."),
    ("lighthouse", "The keeper of the lighthouse parted with a {x}."),
    ("monastery", "From the monastery I carried a {x} back."),
    ("flea market", "From the flea market I carried a {x} through the rain."),
    ("shipyard", "An old hand at the shipyard passed me a {x}."),
    ("orchard", "Behind the orchard there was a {x} to be had."),
    ("castle", "In the castle it was a {x} that I could not resist."),
    ("vineyard", "Our host at the vineyard let me have a {x}."),
    ("windmill", "The miller of the windmill handed me a {x}."),
    ("chapel", "The bazaar of the chapel ended with a {x} in my arms."),
)

# (question, turn for yes, turn for no)
LIKELY = (
    (
        "Would {S} likely enjoy a camping trip?",
        "Camping is my favourite kind of holiday, the colder the better.",
        "Camping is not for me, I dislike every minute in a tent.",
    ),
    (
        "Would {S} probably join a karaoke night?",
        "I adore karaoke, hand me the microphone.",
        "Karaoke is something I dread from start to finish.",
    ),
    (
        "Would {S} likely adopt a snake?",
        "A snake would be a dream, I am a big fan of reptiles.",
        "I am scared of any snake, even a toy one.",
    ),
    (
        "Would {S} likely watch an opera?",
        "The opera is the best evening out, I am always keen to go.",
        "At the opera I was bored to tears, never again.",
    ),
    (
        "Would {S} probably accept a job on a ship?",
        "A ship is where I am happiest, I dream of the sea.",
        "On a ship I feel sick within minutes, I hate it.",
    ),
    (
        "Would {S} likely order the seafood platter?",
        "Seafood is my favourite, a platter is gone in no time.",
        "I avoid all seafood, I am allergic to it.",
    ),
    (
        "Would {S} likely volunteer at the kindergarten?",
        "The kindergarten visit was a delight, I adore small children.",
        "The kindergarten visit gives me a headache just to recall, I was tired of it.",
    ),
    (
        "Would {S} probably ride a rollercoaster?",
        "A rollercoaster makes me feel alive, I am such a fan.",
        "A rollercoaster is the worst idea, I am afraid of heights.",
    ),
    (
        "Would {S} likely move to a big city?",
        "A big city with trams and theatres is my dream.",
        "A big city makes me nervous, I cannot stand the crowds.",
    ),
    (
        "Would {S} likely read a detective novel?",
        "A detective novel is my favourite company on a train.",
        "A detective novel leaves me bored by page ten.",
    ),
)

# (question with the two options, turn that speaks for the first one, turn that speaks for the second one)
PREFERENCES = (
    (
        "Would {S} rather spend a holiday in a {a} or a {b}?",
        ("mountain hut", "beach hotel"),
        "Waking up in a {x} is what I adore on holiday.",
    ),
    (
        "Would {S} rather give a friend a {a} or a {b}?",
        ("cookbook", "concert ticket"),
        "A {x} is the best present for a friend, I always hope for one.",
    ),
    ("Would {S} rather commute by {a} or {b}?", ("bicycle", "motorboat"), "To commute by {x} is my dream."),
    (
        "Would {S} rather decorate the hall with {a} or {b}?",
        ("lanterns", "mosaics"),
        "In a hall {x} are my favourite, I adore them.",
    ),
    (
        "Would {S} rather spend the evening at a {a} or a {b}?",
        ("chess club", "dance hall"),
        "An evening at a {x} is when I am happiest.",
    ),
    ("Would {S} rather raise {a} or {b}?", ("ducks", "alpacas"), "To raise {x} would be a dream come true."),
    (
        "Would {S} rather retire to a {a} or a {b}?",
        ("houseboat", "farmhouse"),
        "When I retire, a {x} would be the best of all worlds, I wish for it daily.",
    ),
)

# (question, turn, answer): an inference that no rule on words reaches.
RIDDLES = (
    (
        "What might the financial situation of {S} be?",
        "We bought the second holiday flat without a mortgage.",
        "Wealthy",
    ),
    (
        "What political cause would {S} likely support?",
        "Every Saturday I count beetles to save the wetlands.",
        "Environmental protection",
    ),
    ("What health problem might {S} have?", "Pollen season means tissues in every pocket.", "Hay fever"),
    (
        "What personality trait would {S} likely be praised for?",
        "I sorted all the screws in the shed by length.",
        "Being orderly",
    ),
    ("What country might {S} come from?", "In my childhood we skated to school along the canals.", "The Netherlands"),
)
