# SPDX-License-Identifier: CC0-1.0
#
# make.awk: the logbook of a harbour that does not exist, days `from` to `to`.
#
#   awk -v from=1 -v to=100 -f make.awk > train.txt
#   awk -v from=101 -v to=120 -f make.awk > held-out.txt
#
# Text for the demo: small, free of anybody's rights, and the same on every machine.  Numbers come from the generator of Park
# and Miller ("Random number generators: good ones are hard to find", 1988), whose products are exact in a double.

function draw(n) { seed = (seed * 16807) % 2147483647; return int(seed / 2147483647 * n) }
function one(list,    part, n) { n = split(list, part, "|"); return part[1 + draw(n)] }
function two(n) { return (n < 10 ? "0" : "") n }
function clock(hour) { return two(hour) ":" two(5 * draw(12)) }
function weekday(n,    name) {
    split("Monday Tuesday Wednesday Thursday Friday Saturday Sunday", name, " ")
    return name[1 + n % 7]
}

function ship() {
    return one("The ferry Anna|The ferry Ulrike|The trawler Petrel|The trawler Grey Seal|The pilot boat|The dredger Mole" \
               "|The coaster Marit|The coaster Three Brothers|The tug Hercules|The schooner Aurora")
}
function cargo() {
    return (2 + draw(38)) " " one("crates of apples|sacks of flour|barrels of herring|bundles of timber|rolls of sailcloth" \
                                  "|tons of coal|coils of rope|boxes of glass|sheep|empty barrels")
}
function place() { return one("the islands|the northern grounds|the capital|the river|the lighthouse|the south coast") }
function who() { return one("The harbour master|The keeper|The pilot|Old Jonas|The smith|The cook|The new boy") }
function work() {
    return one("painted the second buoy|mended the nets on the quay|cleaned the lamp|oiled the crane|counted the ropes" \
               "|repaired the slipway|measured the depth of the basin|wrote to the company about the coal" \
               "|lent a boat to the doctor|fed the cats")
}

# A ship that is away comes in from where she went; one that is here leaves.
function movement(hour,    name, time) {
    name = ship()
    time = clock(hour) "  "
    if (name in away) {
        time = time name " came in from " away[name] " with " cargo()
        time = time one(".|. All well on board.|. Her captain asked for water.|, two days late.|, and a letter for the smith.")
        delete away[name]
        return time
    }
    away[name] = place()
    return time name " left for " away[name] one(".|, in good weather.|. She will be back on " weekday(draw(7)) \
                                                  ".| with " cargo() ".")
}

function day(n,    hour, text) {
    text = "Day " n ", " weekday(n - 1) ".  Wind " \
        one("north|north-east|east|south-east|south|south-west|west|north-west") ", force " (1 + draw(9)) ", " \
        one("sea smooth|sea slight|sea moderate|sea rough") ", " one("clear|cloudy|rain|fog|snow at night") ".\n"
    for (hour = 5 + draw(3); hour < 19; hour += 2 + draw(4))
        text = text movement(hour) "\n"
    text = text "At noon the glass stood at " (985 + draw(45)) " and was " one("rising|falling|steady") ".  "
    text = text who() " " work() "."
    if (draw(3) == 0)
        text = text "\n" who() " " work() ", and nobody was hurt."
    text = text "\nThe light was lit at " clock(17 + draw(4)) " and burned "
    return text one("clear|low|well all night|until the oil was changed") ".\n"
}

BEGIN {
    seed = 1906
    for (n = 1; n <= to; n++) {
        text = day(n)
        if (n >= from)
            print text
    }
}
