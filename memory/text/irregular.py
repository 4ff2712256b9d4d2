"""English words whose forms no rule makes: went is go, children are child.

Only the common ones: each entry is a form, its base, and nothing of what it means. Pure; used
where texts are indexed and asked for, both alike.
"""

from __future__ import annotations

_FORMS = """
be:was were been is are am; begin:began begun; bite:bit bitten; break:broke broken;
bring:brought; build:built; buy:bought; catch:caught; choose:chose chosen; come:came;
cost:cost; cut:cut; deal:dealt; dig:dug; do:did done does; draw:drew drawn; dream:dreamt;
drink:drank drunk; drive:drove driven; eat:ate eaten; fall:fell fallen; feed:fed; feel:felt;
fight:fought; find:found; fly:flew flown; forget:forgot forgotten; get:got gotten;
give:gave given; go:went gone goes; grow:grew grown; hang:hung; have:had has; hear:heard;
hide:hid hidden; hold:held; keep:kept; know:knew known; lead:led; learn:learnt; leave:left;
lend:lent; lose:lost; make:made; mean:meant; meet:met; pay:paid; read:read; ride:rode ridden;
ring:rang rung; rise:rose risen; run:ran; say:said; see:saw seen; seek:sought; sell:sold;
send:sent; sew:sewn; shake:shook; shine:shone; shoot:shot; show:shown; sing:sang sung; sit:sat;
sleep:slept; speak:spoke spoken; spend:spent; stand:stood; steal:stole; stick:stuck;
swim:swam swum; take:took taken; teach:taught; tear:tore torn; tell:told; think:thought;
throw:threw thrown; understand:understood; wake:woke woken; wear:wore worn; win:won;
write:wrote written; child:children; person:people; foot:feet; tooth:teeth; man:men;
woman:women; wife:wives; life:lives; knife:knives; mouse:mice; good:best better;
bad:worse worst
"""

_BASES = {
    form: base
    for base, _, forms in (line.strip().partition(":") for line in _FORMS.split(";"))
    for form in forms.split()
}


def base(word: str) -> str:
    """The base of an irregular form; any other word is its own."""
    return _BASES.get(word, word)
