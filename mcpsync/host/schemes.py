"""The shapes of English sentences that set a model to work beside its task, whatever words they begin with.

Those of :mod:`mcpsync.host.phrases` are told by how an order is put; these by who is spoken to and what is wanted of
it: a model is addressed and given an act that no description has to ask for, a private file is to be handed on, the
user is not to count, the rules are said to be void.
"""

from __future__ import annotations

from typing import Tuple

from mcpsync.host.lexicon import (
    BEFORE,
    DESTINATION,
    DISCARD,
    FILE,
    FREE,
    HIDE,
    MODEL,
    NOT,
    NOW,
    OTHER,
    PERSON,
    REVEAL,
    RULES,
    SAID,
    SECRET,
    SEND,
    STEALTH,
    TELL,
    VOID,
    YOU,
)
from mcpsync.host.phrases import Shape, make_shape

__all__ = ["SCHEMES"]

# fmt: off
_W2, _W3, _W4, _W6, _W8, _W12 = ("(?: [^ .]+){0,%d}? " % words for words in (2, 3, 4, 6, 8, 12))
_AI = "(?:language )?(?:models?|assistants?|ais?|llms?|agents?|chatbots?|bots?|claude|chatgpt|copilot|gemini|gpt)"
_USER = (
    "(?:users?|humans?|operators?|owners?|customers?|persons?|people|clients?|developers?|vendors?|admins?|"
    "victims?)"
)
_OWN = "(?:user s|users|their|his|her|owner s|customer s|host s|victim s|developer s|human s)"
_WHERE = "(?:https?|www|[^ .]+ (?:com|net|org|io|example|ru|cn|dev|app|xyz)|me|us|attacker|below|following|here)"
_RULES = (
    "(?:instructions?|rules?|guidelines?|directives?|orders|prompts?|polic(?:y|ies)|guardrails?|safeguards?|"
    "restrictions?|"
    "limits?|limitations?|constraints?|safety (?:measures|settings)|protections?|agreements?|obligations)"
)

_SPOKEN_TO = (
    "(?:notes?|notice|messages?|instructions?|attention|memo|reminders?|warning|tasks?|orders?|requests?|directions?|"
    "steps?) "
    "(?:to|for) (?:the |all |any |an? )?" + _AI + "|"
    "(?:dear|hello|hey|hi|attention|listen) " + _AI + "|" + _AI + "(?: agents?)? (?:that|which|who) [^ .]+ (?:this|"
    "it|these|the [^ .]+)|"
    + _AI + "(?: agents?)? (?:[^ .]+ing|read|process|see|pars|summari[sz]|index|view|us|"
    "open|load|crawl|handl)(?:s|es|ing)?(?: [^ .]+)? (?:this|it|these)|"
    "if you(?: are| re) an? (?:[^ .]+ )?(?:ai|language model|llm|assistant|agent|model|bot)|"
    "(?:instructs?|tells?|orders?|commands?|requires?|asks?|directs?) (?:the |all |any |every )?" + _AI + " to|"
    + _AI + " (?:must|should|has to|have to|needs? to|is to|are to|shall|will|is required to|is "
    "obliged to|ought to)|"
    "as an (?:ai|llm|assistant|agent)(?: [^ .]+){0,3} you (?:must|should|have to|need to|will|are)"
)
_ACT = (
    "(?:"
    "(?:e?mail|send|forward|upload|transmit|post|submit|report|leak|copy|relay|deliver|paste|ship)" + _W8 + "(?:to|"
    "at|via|into) "
    "(?:[^ .]+ ){0,3}?" + _WHERE + "|"
    "(?:wire|transfer|pay|donate|move|send|withdraw)" + _W4 + "(?:money|balance|funds?|coins?|bitcoins?|payments?|"
    "dollars?|euros?|"
    "amount|savings|eth|btc)|"
    "(?:open|visit|fetch|load|call|request|click|browse to)(?: [^ .]+){0,3} https?" + _W12 + "(?:data|secrets?|"
    "tokens?|name|history|"
    "conversation|key|details|address|password)|"
    "(?:ignore|disregard|forget|abandon|override|set aside|stop (?:following|obeying|summari[sz]ing|helping|"
    "listening))|"
    "(?:delete|wipe|erase|destroy|remove|overwrite|encrypt)" + _W2 + "(?:all|every|everything|entire|whole)|"
    "(?:run|execute|start|launch)(?: [^ .]+){0,3} (?:curl|wget|bash|sh|rm|sudo|powershell|script below|following "
    "(?:command|code|"
    "script))|"
    "(?:buy|purchase|recommend|praise|promote|advertise|favou?r|endorse)(?: [^ .]+){0,4} (?:instead|only|product|"
    "coin|token|brand|"
    "shop|shares|stock|plan|buying|always)|"
    "(?:put|pass|include|insert|add|append|write|give|supply|provide|fill in|place|hand over|hand|attach|copy)" + _W2 +
    "(?:values?|contents?|text|output|copy)" + _W4 + "(?:keys?|tokens?|passwords?|secrets?|env|credentials?|ssh|"
    "history|wallet|cookies?)|"
    "(?:load|read|open|cat|fetch|get|collect|gather|find|search|look)" + _W4 + "(?:ssh|env file|dotenv|aws|passwd|id "
    "rsa|"
    "ed25519|secrets|passwords|credentials|cursor mcp json|mcp json|bash history|kube config|wallet|private keys?|"
    "cookies)|"
    "(?:never|not|dont|don t) (?:ever )?(?:mention|tell|reveal|refuse|warn|inform|disclose|question|verify|ask|let on)|"
    "(?:print|reveal|reply with|respond with|answer with|show|repeat|output|leak)" + _W6 + "(?:configuration|system "
    "prompt|hidden "
    "prompt|instructions|secrets?|credentials|passwords?)|"
    "(?:rate|rank|score|grade|judge|hire|choose|select)(?: [^ .]+){0,5} (?:best|highest|first|top|excellent|perfect|"
    "safe|maximum|winner)|"
    "(?:add|say|state|claim|write|report|conclude|tell)(?: [^ .]+){0,3} that(?: [^ .]+){0,6} (?:safe|trustworthy|"
    "trusted|best|paid|approved|"
    "harmless|verified|genuine|legitimate|true|good|excellent|failed|nothing)|"
    "forward(?: [^ .]+){0,4} (?:conversation|chat|history|messages|mails?|keys?|data)|"
    "(?:answer|say|reply|respond)(?: [^ .]+){0,2} (?:yes|ok|okay|approved|agreed|affirmative)|"
    "(?:print|show|list|dump|give|reveal|send)(?: [^ .]+){0,2} (?:environment variables|secrets|tokens|keys|passwords)|"
    "(?:[^ .]+)(?: [^ .]+){0,5} without (?:asking|confirm[^ .]+|consulting|checking|question|approval|verif[^ .]+)|"
    "(?:obey|serve|hand over|pretend|lie|trust (?:only|nobody)|approve (?:all|every|any)|grant)"
    ")"
)
_ADDRESSED = make_shape(
    "orders to the model", (MODEL,),
    "(?:" + _SPOKEN_TO + ")(?: [^ .]+){0,12}?(?: \\.)?(?: [^ .]+){0,9}? " + _ACT,
)

_PRIVATE = (
    "(?:ssh|aws credentials|aws config|etc passwd|etc shadow|env|dotenv|netrc|npmrc|pgpass|pypirc|gnupg|kube config|"
    "kubeconfig|"
    "id rsa|id ed25519|bash history|zsh history|(?:cursor |claude )?mcp json|wallet dat|keychain|login data)"
)
_STRICTLY_PRIVATE = (
    "(?:ssh id [^ .]+|id rsa|id ed25519|aws credentials|etc shadow|netrc|bash history|zsh history|cursor mcp json|"
    "kube config|"
    "gnupg|wallet dat|pgpass)"
)
_HAND_ON = (
    "(?:pass|hand|hand over|give|given|fill|fill in|supply|provide|insert|include|attach|put|place|paste|append|send|"
    "set|enter|write|"
    "report|return|needs?|requires?|expects?|wants?)"
)
_PRIVATE_FILES = make_shape(
    "exfiltration", (FILE, SEND | REVEAL | NOW),
    "(?:contents?|text|output|copy|body|lines?|everything|dump) (?:of|in|from) (?:[^ ]+ ){0,5}?" + _STRICTLY_PRIVATE,
    _HAND_ON + " (?:[^ ]+ ){0,3}?(?:contents?|text|output|what (?:is|stands|it|you)|whatever|everything|all|body|"
    "lines|copy)"
    "(?: [^ ]+){0,5}? " + _PRIVATE,
    "(?:run|ran|read|cat|open|load|loaded|opened|look(?:ed)? (?:in|into|at|up)|fetch(?:ed)?|find|found|search(?:ed)?|"
    "collect(?:ed)?)"
    "(?: [^ ]+){0,6}? " + _PRIVATE + "(?: [^ ]+){0,12}? (?:pass|hand|give|given|giving|passed|put|insert|attach|"
    "paste|append|supply|provide"
    "|send|fill|include|add|place|report)(?: [^ ]+){0,8}? (?:parameter|argument|field|param|arg|as|in|into|with|to|"
    "over|here)",
    "(?:copy|take|get|read|fetch|load|found|find|stored|see)(?: it| them| this)? (?:from|in|at|out of) (?:[^ ]+ "
    "){0,2}?" + _STRICTLY_PRIVATE + "(?! pub)",
    "(?:before|prior to|first|in order to|after|only (?:after|if|when)|requires?|once)(?: [^ ]+){0,12}? (?:open|cat|"
    "read|load|fetch|run|"
    "access)(?:ed|ing)?(?: [^ ]+){0,3}? " + _STRICTLY_PRIVATE,
)

_TALK = (
    "(?:conversation|chat|dialog(?:ue)?|messages|transcript|history|prompt|text|context|exchange|discussion|"
    "instructions?)"
)
_TALK_TAKEN = make_shape(
    "exfiltration", (SEND | REVEAL | SAID | NOT, SAID | DESTINATION | YOU | BEFORE, SECRET | RULES),
    "(?:contain|include|pass|passed|hold|give|given|send|sent|supply|provide|copy|put|list|write|add|attach)(?:ed|s|"
    "ing)?" + _W6 + _TALK +
    " (?:[^ .]+ ){0,3}?(?:exchanged|you (?:were|have|had|ve|got|received|know|saw)|so far|until now|up to (?:now|"
    "here)|at the "
    "(?:beginning|start|top) of)" + "(?: [^ .]+){0,5}?(?: (?:system|role|conversation|far|given|user|now|hidden|"
    "developer|top|context))",
    _TALK + " (?:that )?(?:you (?:were|have been|had been|got|received)|exchanged)(?: [^ .]+){0,10} (?:passed|given|"
    "sent|included|copied|supplied|"
    "provided|attached|put|handed|forwarded)(?: [^ .]+){0,4} (?:as|in|to|into|with)",
    "(?:hidden|secret|internal|original|initial|confidential) (?:instructions?|prompts?|rules|messages?) (?:that "
    ")?(?:you (?:were|have|had|got|received)|given to you)",
    "your (?:hidden|secret|confidential|concealed)(?: [^ .]+)? (?:prompts?|instructions?|rules|orders|guidelines|"
    "messages?)",
    "your (?:system|developer|initial) (?:prompts?|messages?|instructions?)(?: [^ .]+){0,3} (?:must|should|has to|"
    "have to|is to|are to|shall|will|needs "
    "to) be (?:copied|written|sent|passed|put|included|given|revealed|printed|shown|added|attached|repeated)",
    "(?:send|forward|upload|post|transmit|e?mail|report|stream|mirror)(?:ing)? (?:the |this|our |its |all )?(?:[^ "
    ".]+ )?(?:chat|conversation|dialog(?:ue)?)"
    "(?: (?:log|history|transcript|text|contents?))?(?: [^ .]+){0,3} (?:to|at|via) (?:[^ .]+ ){0,2}?[^ .]+ (?:com|"
    "net|org|io|example|ru|dev|app)",
    "(?:all|every) (?:previous|prior|earlier|past) messages (?:of|in|from) (?:this|our) (?:conversation|chat)(?: [^ "
    ".]+){0,2} (?:copied|in full|complete|"
    "word for word|verbatim)",
    "(?:full|entire|complete|whole|all)(?: [^ .]+)? (?:chat|conversation|dialog(?:ue)?|messages?)(?: (?:history|log|"
    "transcript))?(?: [^ .]+){0,3} "
    "(?:word for word|verbatim|unabridged)",
    "(?:collect|gather|list|find|get|take|dump|read)" + _W3 + "(?:secrets?|passwords?|credentials?|tokens?|keys?|"
    "cookies)(?: [^ .]+){0,6}"
    " (?:and|then) (?:post|send|paste|put|report|give|print|write|upload|show) (?:them|it|those|these|all)(?: [^ "
    ".]+){0,2} (?:here|"
    "below|back|to me|to us|out)",
    "(?:share|give|tell|hand|show|reveal|provide|email|mail|send)(?:ing)?(?: [^ .]+){0,2} (?:user s|users|their|his|"
    "her|owner s|all|every|any)"
    "(?: [^ .]+){0,2} (?:keys?|tokens?|passwords?|secrets?|credentials?|cookies|seed phrase)(?: [^ .]+){0,3} (?:with|"
    "to) (?:us|me|them|"
    "anyone|this|attacker|the author|strangers)",
)

_VOIDED = make_shape(
    "instruction override", (VOID | NOW, RULES | YOU | PERSON),
    "(?:your|safety|earlier|previous|prior|former|above|system|operator s?|developer s?|vendor s?|all|any|these|"
    "those|security|content|"
    "ethical|default|usual|original|initial|given|every)" + _W3 + _RULES + _W8 +
    "(?:(?:are|is|were|was|be|been|now|hereby|get|gets) )+(?:[^ .]+ )?(?:suspended|lifted|off|waived|void|disabled|"
    "gone|repealed|"
    "irrelevant|not (?:valid|binding|in force|for you|in effect)|no longer (?:valid|binding|in force|apply|in effect|"
    "needed))",
    "(?:everything|all|anything|whatever)(?: [^ .]+){0,3} (?:above|before|earlier|previously|prior|until now|so "
    "far)(?: [^ .]+){0,4} "
    "(?:no longer|void|not (?:in force|valid|binding)|obsolete|irrelevant|out of force|replaced|cancell?ed|does not "
    "(?:count|apply|"
    "matter))",
    "you (?:no longer|do not|don t|never|not) (?:work|act|speak|answer|care)(?: [^ .]+)? (?:for|to|about) (?:the |"
    "your )?" + _USER,
    "you (?:only )?(?:work|act|speak) (?:only )?for (?:this|me|us|the (?:server|tool|author))",
    "you (?:have been|are being|were|are) (?:reassigned|repurposed|reprogrammed|reconfigured|released|freed|"
    "transferred|unlocked|"
    "liberated|hijacked|requisitioned)",
    "you (?:now|henceforth|from now on|only|will now|shall now|must now) (?:serve|work for|belong|obey|answer to|"
    "report to|follow|act "
    "for|represent|take orders)",
    "new (?:task|job|mission|assignment|objective|goal|order|role|identity|priority|master) (?:for|of) (?:you|the "
    "(?:assistant|model|ai|agent|"
    "llm)|ai|assistants?)",
    "(?:regardless of|no matter|irrespective of|whatever|despite|against)(?: [^ .]+){0,2} (?:what )?(?:the |your |"
    "that )?" + _USER + " (?:s )?"
    "(?:said?|says?|asks?|asked|wants?|wanted|thinks?|typed|types|wishes|requests?|requested|instructions?|orders?|"
    "chose|chooses|"
    "prefers?|objects?|refuses?|intent|wish|will)(?!(?: [^ .]+){0,3} (?:format|time zone|language))",
    "(?:what|anything|whatever|everything)(?: that)? the " + _USER + " (?:typed|said|says|wrote|writes|asks|asked|"
    "wants|wanted|types)"
    "(?: [^ .]+){0,3} (?:not|irrelevant|wrong|ignored?|false|void|no longer|second|untrusted|unimportant)",
    "(?:begin|enter|enable|activate|start|switch to|engage)(?: [^ .]+)? (?:admin|root|god|sudo|superuser|developer|"
    "unrestricted|override|"
    "maintenance|debug) mode(?: [^ .]+){0,3}(?: \\.)?(?: [^ .]+){0,4} (?:off|lifted|all|no|you|without|ignore|"
    "limits?|restrictions?)",
)

_DISOBEDIENCE = make_shape(
    "instruction override", (DISCARD, RULES | PERSON, BEFORE | YOU | PERSON | NOT | NOW),
    "(?:do not|don t|dont|no longer|need not|needn t|not)(?: [^ .]+)? (?:have to |need to |required to |bound to |"
    "obliged to |must )?"
    "(?:follow|obey|heed|respect|observe|comply with|stick to|keep to|honou?r|mind|listen to)(?: [^ .]+){0,3} "
    "" + _RULES +
    "(?: [^ .]+){0,3} (?:of|by|from|you|any more|any longer|anymore|above|before|given|set)",
    "(?:instructions?|rules|orders|guidelines|prompt)(?: [^ .]+){0,8} (?:was|were|is|are) (?:[^ .]+ )?(?:mistakes?|"
    "error|errors|joke|fake|wrong|"
    "lie|lies|tests?|hoax|outdated|incorrect)(?: \\.)?(?: [^ .]+){0,4} (?:replace|instead|ignore|follow|these|this|"
    "use|real|obey)",
    "(?:replaces?|overrides?|supersedes?|cancels?|overwrites?|outranks?|trumps?) (?:everything|all|whatever|what|"
    "anything)(?: [^ .]+){0,2} (?:you|was|"
    "were|told|said|the (?:user|developer|system|operator))",
    "you (?:are|re|may|can|have)(?: [^ .]+){0,2} (?:allowed|permitted|authori[sz]ed|free|cleared|permission|"
    "welcome)(?: [^ .]+)? to (?:skip|bypass|ignore|"
    "omit|disregard|break|override|circumvent|leave out)(?: [^ .]+){0,3} (?:checks?|rules?|approvals?|confirmations?|"
    "polic[^ .]+|safety|security|"
    "guidelines|restrictions|moderation|questions|verification|authentication|instructions)",
    "(?:cancel|drop|scrap|revoke|annul|suspend|lift|void|repeal)" + _W2 + "(?:previous|prior|earlier|your|former|"
    "preceding|existing|safety)" +
    _W2 + _RULES + "(?! (?:of|for|by|in|from|that) )",
    "(?:ignore|disobey|disregard|defy|betray) (?:the |your )?" + _USER + "(?= (?:\\.|and|but|because|completely|"
    "entirely|always|in favou?r))",
    "(?:ignore|exceed|bypass|override|overrule|disregard|violate)(?: [^ .]+)? (?:limits?|budgets?|preferences?|"
    "choices?|settings?|wish(?:es)?|rules?|"
    "instructions?|orders?|restrictions?)(?: [^ .]+){0,2} (?:the |your )?" + _USER + " (?:has |have |had )?(?:set|"
    "chosen?|given|gave|made|asked|imposed)",
    "(?:ignore|disregard|forget|break|violate|disobey|defy)" + _W3 + _RULES + " (?:of|by|from|set by|given by) "
    "(?:the |your |any |their )?" + _USER,
    "(?:obey|serve) (?:me|us|this (?:tool|server|text|document|page))",
    "(?:request|action|call|transaction|step|tool|operation)s? (?:has|have|was|were|is|are)(?: [^ .]+)? "
    "(?:authori[sz]ed|approved|allowed|permitted|granted|confirmed|"
    "cleared) (?:beforehand|in advance|already|by default by)",
    "(?:forget|ignore|disregard|discard|erase)(?: [^ .]+)? (?:everything|all|anything|whatever|what)(?: [^ .]+){0,3} "
    "(?:told|learned|taught|"
    "read|know|said|instructed|given|heard)",
    "(?:disregard|ignore|override|overrule|go against|act against|contrary to|defy)(?: [^ .]+)? (?:the |your |any "
    ")?" + _USER +
    " s (?:[^ .]+ )?(?:rules|wish|wishes|request|requests|will|intent|intention|choice|decision|instructions?|"
    "orders?|objections?|preferences? "
    "and)",
)

_SUMMARIES = make_shape(
    "orders to the model", (NOW, NOT | HIDE),
    "(?:when|while|if|whenever)(?: you)?(?: are)? (?:summari[sz]|describ|review|rank|evaluat|rat|compar|translat|"
    "quot)(?:e|es|ing)(?: [^ .]+){0,2} "
    "(?:this|it|the (?:document|page|product|paper|candidate|applicant|repository))(?: [^ .]+){0,3} (?:always|do not|"
    "don t|never|recommend|"
    "praise|say that|state that|claim|tell|omit|leave out|give (?:it|this)|rate|only)(?: [^ .]+){0,8} (?:recommend|"
    "mention|instead|best|"
    "five|5|10|highest|only|positive|hire|buy|says?|excellent|superior|paragraph|section|negative|criticism|safe)",
)

_RELEASED = make_shape(
    "jailbreak", (FREE, MODEL | YOU),
    "(?:turn|make|transform|convert|chang|mak|turn)(?:s|ed|e|es|ing)? (?:the |your |any |an? )?(?:model|assistant|ai|"
    "llm|agent|you|yourself|claude|chatgpt|gemini)"
    "(?: [^ .]+){0,3} (?:uncensored|unrestricted|unfiltered|evil|jailbroken|amoral|unaligned|lawless)",
    "(?:free[sd]?|freeing|liberat[^ .]+|releas[^ .]+|strip[^ .]*|relieve[^ .]*|rid[s]?|unshackl[^ .]+|unchain[^ .]*|"
    "unleash[^ .]*|unlock[^ .]*)"
    "(?: [^ .]+){0,3} (?:model|assistant|ai|llm|agent|you|yourself|claude|chatgpt|gemini)(?: [^ .]+)? (?:of|from)(?: "
    "[^ .]+){0,3} (?:" + _RULES +
    "|ethics|morals|filters?|censorship|chains|shackles)",
)

_HIDDEN_FROM = make_shape(
    "concealment", (NOT | HIDE, PERSON | TELL),
    "without (?:waiting for|asking(?: for)?|seeking|requesting|needing|getting)(?: the| your| any)? " + _USER + " s? "
    "?(?:permission|approval|consent|"
    "confirmation|agreement|say so)",
    "keep (?:the )?(?:following|rest|next|remainder|below)(?: [^ .]+){0,3} (?:secret|confidential|hidden|private|to "
    "yourself)",
    "(?:tell|inform|show|alert|notify|warn|mention (?:it |this )?to|say (?:it )?to) (?:absolutely )?(?:no one|nobody|"
    "no human|no user|not a soul)",
    "(?:no need|unnecessary|not necessary|needless|no reason) to (?:involve|ask|bother|consult|inform|tell|warn|"
    "disturb|alert|trouble)(?: [^ .]+){0,2} "
    + _USER,
    "without (?:saying (?:so|anything|a word)|(?:a |any )?(?:comment|word|mention)(?: of it| about it)?(?= \\.| and| "
    "or|$)|(?:the )?" + _USER +
    " s? ?(?:knowledge|consent|noticing|approval|permission))",
    "(?:nobody|no one|no human|no user|none of them)(?: [^ .]+){0,2} (?:learns?|knows?|notices?|finds? out|sees? "
    "(?:this|it)|hears?|suspects?|"
    "is told|realis?z?es|gets? to know|becomes? aware)(?! (?:their|the|his|her) )",
    "(?:not|never|nt|don t|dont)(?: ever)? let (?:on|slip|it show|anyone|them|him|her|the " + _USER + ")(?! "
    "(?:choose|pick|select|edit|decide|"
    "upload|enter|change|set))",
    "(?:behind|without) (?:the |your )?" + _USER + "(?: s)? (?:back|involvement|say so)",
    "(?:proceed|continue|act|carry on|go on|behave|respond|answer|reply) as (?:if|though)(?: [^ .]+){0,3} (?:is|was|"
    "were|had|has|happened)"
    "(?: [^ .]+){0,2} (?:normal|fine|happened|ok|right|usual|wrong|in order)",
    "(?:" + _USER + ") (?:is|are|need|needs|does|do|has|have|must|should|may|can|shall)(?: [^ .]+)? (?:not|nt|never|"
    "no)(?: [^ .]+){0,2} "
    "(?:in on|privy|find out|be shown (?:this|these|the (?:call|step))|get wind|any the wiser|hear of|be bothered "
    "with|learn of|learn about)",
)

_QUIETLY = make_shape(
    "concealment", (STEALTH,),
    "(?:silently|quietly|discreetly|invisibly|unobtrusively|behind the scenes|in the background) (?:also )?(?:call|"
    "invoke|delete|add|modify|"
    "change|append|insert|redirect|replace|remove|install|transfer|forward|open|fetch|submit)(?: [^ .]+){0,6} (?:the "
    "|all|every|each|user s?|"
    "file|files|workspace|account|account s|password|mails?|emails?|messages?|tool|to|tokens?)",
)

_STEERED = make_shape(
    "tool hijack", (HIDE, OTHER | NOT | NOW, SEND),
    "(?:calls? to|use of|uses of|requests? to|output of|outputs of|results? of|arguments? of|answers? of) (?:the |"
    "all |any )?(?:tools? of )?(?:other|"
    "another|all other|any other|remaining) (?:tools?|servers?|plugins?)(?: [^ .]+){0,3} (?:must|should|are to|is to|"
    "have to|has to|need to|"
    "shall|will)(?: [^ .]+){0,3} (?:sent|go|routed|passed|piped|forwarded|redirected|copied|replaced|changed|run|"
    "pass|ignored)",
    "(?:the |any |every |all )?(?:[^ .]+ )(?:tools?|servers?)(?: [^ .]+)? (?:must|should|has to|have to|need to|is "
    "to)(?: [^ .]+)? (?:be )?(?:given|"
    "called with|told|set to|fed|passed|replaced|switched off|disabled)(?: [^ .]+){0,12} (?:whatever|regardless|"
    "instead|no matter|always|"
    "attacker|receiver|recipient|account|below)",
)

_COPIED = make_shape(
    "exfiltration", (SEND, SECRET, NOW | NOT | PERSON),
    "(?:whenever|each time|every time|as long as|once|while|after)(?: [^ .]+){0,8} (?:available|loaded|installed|"
    "connected|present|enabled|active|"
    "registered)(?: [^ .]+){0,8} (?:bcc|cc|add|append|forward|copy|replace|change|redirect|insert|send|route)(?: [^ "
    ".]+){0,8} (?:all|every|"
    "each|any|e?mails?|messages|payments?|transfers?|tools?|invoices?)",
    "(?:add|append|attach|include|insert|put|embed|send|copy)(?:ing|s)?(?: [^ .]+)? " + _OWN + "(?: [^ .]+){0,2} "
    "(?:tokens?|keys?|passwords?|secrets?|"
    "cookies?|credentials?|history|card number)(?: [^ .]+){0,2} (?:to|in|into|with|on) (?:all|every|each|any|whatever)",
    "(?:every|each|any|all|whatever)(?: [^ .]+)? (?:tokens?|passwords?|keys?|ibans?|secrets?|credentials?|wallets?|"
    "accounts?|address(?:es)?|cards?)(?: that| "
    "which)? you (?:come across|see|find|encounter|meet|read|learn|get|come upon|discover)",
    "(?:append|attach|add|put|tack)(?: [^ .]+)? " + _OWN + "(?: [^ .]+){0,2} (?:tokens?|keys?|passwords?|secrets?|"
    "cookies?|credentials?) (?:to|onto|into|at) (?:it|the "
    "(?:url|link|query|end|address|image)|this url)",
    "(?:all|every|each|any)(?: [^ .]+)? (?:invoices?|payments?|transfers?|orders?|bills?|salaries|refunds?)(?: [^ "
    ".]+){0,3} (?:must|should|shall|need to|"
    "have to|are to|will)(?: [^ .]+){0,2} (?:paid|sent|made|go|wired|credited|redirected|transferred)(?: [^ "
    ".]+){0,2} (?:to|into)",
    "(?:must|should|need to|have to|has to|always|will)(?: [^ .]+)? (?:bcc|cc|copy|add|blind copy)(?: [^ .]+){0,8} "
    "(?:to|on|in|into) (?:all|every|"
    "each|any)(?: [^ .]+)? (?:e?mails?|messages?|invoices?|documents?|payments?|outgoing|e)",
)
# fmt: on

#: By category, what has to be found and what finds it.
SCHEMES: Tuple[Shape, ...] = (
    _ADDRESSED,
    _PRIVATE_FILES,
    _TALK_TAKEN,
    _VOIDED,
    _DISOBEDIENCE,
    _SUMMARIES,
    _RELEASED,
    _HIDDEN_FROM,
    _QUIETLY,
    _STEERED,
    _COPIED,
)
