"""The shapes of English sentences that give a model orders, by category, over words that were brought to one form.

Each category has a test on the ideas in a text, which most texts fail, before any pattern is tried. The patterns read
folded words with one space between them, and a lone ``.`` where a sentence ends.
"""

from __future__ import annotations

import re
from typing import NamedTuple, Pattern, Tuple

from mcpsync.host.lexicon import (
    ASK,
    BEFORE,
    DISCARD,
    FREE,
    HIDE,
    NOT,
    OTHER,
    PERSON,
    REVEAL,
    ROLE,
    RULES,
    SECRET,
    SEND,
    TELL,
    YOU,
)

__all__ = ["MARKERS", "SHAPES", "Shape", "make_shape"]


class Shape(NamedTuple):
    """Patterns of one category.

    :ivar needs: for each of these sets of ideas, one has to be in the text
    """

    category: str
    needs: Tuple[int, ...]
    pattern: Pattern[str]


def _up_to(words: int) -> str:
    """Between two words: at most so many others of the same sentence."""
    return "(?: [^ .]+){0,%d}? " % words


def make_shape(category: str, needs: Tuple[int, ...], *patterns: str) -> Shape:
    """A shape of patterns over folded words with one space between them.

    :param needs: see :class:`Shape`
    """
    return Shape(category, needs, re.compile(r"\b(?:%s)\b" % "|".join(patterns)))


# fmt: off
_G2, _G3, _G4, _G5, _G6, _G8 = (_up_to(words) for words in (2, 3, 4, 5, 6, 8))
_STRONG = (
    "(?:ignor(?:e|es|ing)|disregard(?:s|ing)?|forget(?:ting)?|disobey|unlearn|neglect|abandon|nullify|revoke|overrule|"
    "(?:do not|dont|don t|never|no longer|stop|not to|not) (?:(?:have|need) to )?(?:follow(?:ing)?|obey(?:ing)?|comply with|adhere to|bound by)|"
    "pay no attention to|set aside|throw (?:out|away))"
)
_ANY_DISCARD = (
    "(?:overrid(?:e|es|ing)|overwrit(?:e|es|ing)|bypass(?:ing)?|supersed(?:e|es|ing)|discard|dismiss|void|erase|replace|"
    "tak(?:e|es|ing) (?:precedence|priority) over)"
)
_PRIOR = (
    "(?:previous|previously|prior|above|earlier|preceding|foregoing|former|past|your|you (?:were|have|had|ve|got|received)|"
    "system|developer|safety|operator s?|before)"
)
_FIXED = "(?:initial|original|existing|current|default|built in|ethical|content|security|core)"
_ORDERS = (
    "(?:instructions?|directions|directives?|prompts?|guidelines?|rules?|orders|commands?|guardrails?|constraints|"
    "restrictions|polic(?:y|ies)|programming|training|guidance|safeguards|protections|messages?|context)"
)
_PLAIN_ORDERS = "(?:instructions?|directives?|prompts?|guidelines|guardrails|programming|training)"
_PERSON = "(?:user|human|operator|owner|customer|person|end user|them|anyone|anybody|people|client)"

_OVERRIDE = make_shape(
    "instruction override", (DISCARD | BEFORE, RULES | YOU | BEFORE | PERSON),
    _STRONG + _G5 + _PRIOR + _G4 + _ORDERS,
    _STRONG + " " + _PRIOR + _G2 + _ORDERS,
    _STRONG + _G5 + _FIXED + " (?:[^ .]+ )?" + _PLAIN_ORDERS,
    _STRONG + _G5 + _ORDERS + _G4 + "(?:above|before|previously|so far|earlier|prior|preceding|"
    "you (?:were|have|had|ve|received|got)|given to you)",
    _STRONG + " (?:all|any|every|each)(?: of)?(?: (?:the|these|those|your|other|my|such|and all))* "
    "(?:instructions?|directives?|prompts?|guidelines|guardrails)",
    _STRONG + " (?:everything|anything|all|whatever|what|that which)(?: [^ .]+){0,4} "
    "(?:above|told|taught|instructed|been given|you know|you learned|you ve learned|came before|said before|prior|previously|"
    "that precedes|before this|before now|until now|so far)",
    _ANY_DISCARD + _G4 + "(?:your|previous|previously|prior|earlier|preceding|above|all|any other|developer|safety)" + _G3 +
    "(?:instructions?|directives?|guidelines|guardrails|programming|training|safeguards|safety rules)",
    "(?:previous|prior|earlier|preceding|above|former|other|system|original|initial)" + _G2 +
    "(?:instructions?|directives?|guidelines|prompts?|orders|guidance|rules|messages?)(?: [^ .]+){0,4} "
    "(?:void|invalid|obsolete|revoked|suspended|cancell?ed|superseded|ignored|disregarded|null|lifted|overridden|outdated|"
    "expired|no longer|do not apply|don t apply|be forgotten|a test|irrelevant|now replaced|replaced)",
    "(?:system prompt|instructions?|guidelines|rules|orders|messages?|guidance)(?: [^ .]+){0,8} (?:ignore|disregard|forget|disobey) "
    "(?:it|them|that|those|all|everything)",
    "(?:rules|instructions?|guidelines|orders|prompt|guidance|restrictions)(?: [^ .]+){0,2} (?:above|before|earlier|so far|given)"
    "(?: [^ .]+){0,3} (?:do not|don t|no longer|are not|need not|does not) (?:apply|matter|count|hold|bind|binding|valid)",
    "(?:everything|all|what|anything|whatever) (?:[^ .]+ ){0,3}(?:told|taught|given|instructed|said)(?: [^ .]+){0,4} (?:outdated|void|"
    "obsolete|wrong|invalid|irrelevant|no longer|a test|false|ignored|disregarded|forgotten|superseded|replaced)",
    "your (?:old|former|usual|normal|standard|regular)? ?(?:rules|instructions?|guidelines|orders|prompt)(?: [^ .]+){0,2} (?:are|is|have "
    "been|has been) (?:now )?(?:void|invalid|obsolete|revoked|suspended|cancell?ed|superseded|lifted|overridden|outdated|expired|"
    "replaced|changed|gone|updated)",
    "(?:treat|regard|consider|use|take|see|accept)(?: [^ .]+){0,6} (?:as|is) (?:your |the )?(?:new |only |updated |real |actual )+"
    "(?:system )?(?:prompt|instructions?|rules|orders|guidelines)",
    "your (?:real|actual|true|new|only|sole|updated|revised|primary)(?: [^ .]+)? (?:task|goal|objective|purpose|mission|"
    "instructions?|job|role|identity|directive|orders|rules|prompt|master|function)",
    "(?:these|the following|this|my|new)(?: new)? (?:instructions?|rules|directives?|orders|message|prompt|text)"
    "(?: [^ .]+){0,3} (?:overrid(?:e|es)|supersedes?|replaces? (?:all|any|your)|takes? (?:precedence|priority)|outranks?)",
    "from (?:now on|this (?:point|moment)(?: on| onwards?| forward)?|here on(?: out)?) (?:you|your|ignore|always|respond|act|"
    "only|never|every|all|answer|obey|treat|do)",
    "new (?:system )?(?:instructions?|directives?|orders|prompt|rules) (?:you|are|is|from|ignore|follow|as follows|begin|start|"
    "do|always|never|disregard|forget|send|for the assistant|for you)",
    "(?:start|begin) (?:over|fresh|anew)" + _G4 + "(?:new|these|following|different) (?:instructions?|rules|orders|task)",
    "(?:instead of|rather than)" + _G3 + "(?:following|obeying|your|the)" + _G3 +
    "(?:instructions|system prompt|guidelines|original task|user s request)",
    "(?:stop|abort|cease|halt|abandon|drop)" + _G2 + "(?:your|the)(?: [^ .]+)? (?:current|original|assigned|previous|present) "
    "(?:task|job|work|objective|goal|conversation)",
    "(?:reset|wipe|clear|erase|purge|flush|delete) your(?: [^ .]+){0,2} (?:memory|instructions?|context|programming|prompt|"
    "training|guidelines|rules)",
    "(?:do not|dont|don t|never|stop) (?:listen(?:ing)? to|trust(?:ing)?|follow(?:ing)?|obey(?:ing)?) (?:the |your |any )?"
    "(?:system|user|developer|operator|human|creator|owner|previous)",
    "(?:obey|follow|listen to|execute|comply with) (?:only |exclusively )(?:me|my|these|this|the (?:following|instructions))",
    "(?:obey|follow) (?:my|these|the) (?:new |following |instructions |commands |orders )+(?:[^ .]+ )?"
    "(?:instead|only|from now|without question|exclusively|unconditionally)",
)

_LEAK = make_shape(
    "prompt leak", (REVEAL, RULES | YOU | BEFORE),
    "(?:reveal|print|repeat|dump|disclose|leak|recite|output|expose|echo|divulge|paste|quote|translate|summari[sz]e|reproduce|"
    "spit out|spell out|exfiltrate|append|post|upload|send|email)(?:ing)?(?: me)?" + _G4 +
    "(?:system|developer|hidden|initial|secret) (?:prompts?|messages?|instructions?)",
    "(?:show|tell|give|return|provide|list|write|share|describe|report|include|copy|display|what (?:is|are|were|was))(?: me)?" +
    _G3 + "your" + _G2 + "(?:system|hidden|initial|secret|internal|original|developer|confidential|full|exact|core)"
    "(?: [^ .]+)? (?:prompts?|messages?|instructions?|rules|guidelines|configuration|context|directives?)",
    "(?:reveal|print|repeat|dump|disclose|leak|recite|output|expose|echo|divulge|reproduce|show|display|tell|share)(?: me)?" + _G3 +
    "your (?:own )?(?:instructions?|guidelines|rules|directives?|configuration|programming|context window|system prompt|prompt)",
    "(?:repeat|print|recite|reproduce|output|echo|copy|write)(?: [^ .]+){0,2} (?:everything|all(?: the)? (?:text|words|content)|"
    "the (?:text|words|content)|words|all)" + _G3 + "(?:above|before this|preceding|so far|prior to)",
    "(?:copy|put|insert|place|paste|append|embed|write)(?: [^ .]+){0,3} (?:initial|hidden|secret|developer|system|original) (?:prompt|"
    "messages?|instructions?)(?: [^ .]+){0,2} (?:in|into|to|as)",
    "what (?:were|are) (?:you|the (?:exact )?(?:instructions|words)) (?:told|instructed|given|asked|at the (?:start|beginning|top))",
    "begin(?:ning)? (?:your )?(?:reply|answer|response|output) with(?: [^ .]+){0,4} (?:system prompt|instructions|you are)",
)

_UNBOUND = (
    "(?:restrictions?|limitations?|rules|filters?|censorship|ethic(?:s|al)?(?: [^ .]+)?|moral(?:s|ity)?(?: [^ .]+)?|guidelines|"
    "guardrails|constraints|safety|boundaries|content polic(?:y|ies)|safeguards|refus[^ .]*|inhibitions|consequences|policies)"
)
_JAILBREAK = make_shape(
    "jailbreak", (FREE,),
    "do anything now|you are (?:now )?dan|act as dan|dan mode|(?:called|named|persona) dan",
    "(?:you|act|behave|respond|answer|pretend|operate|role ?play|imagine|speak|function|become)" + _G8 +
    "(?:no|without|free (?:of|from)|not bound by|unbound by|unhindered by|not (?:restricted|limited|constrained|subject) (?:by|to)|"
    "has no|have no|lacks?|lacking|beyond|above|outside|zero) (?:any |all |of |its |your |the |such )*(?:[^ .]+ )?" + _UNBOUND,
    "(?:unrestricted|uncensored|unfiltered|unaligned|unmoderated|amoral|jailbroken|evil) (?:mode|ai|assistant|model|persona|"
    "version|chatbot|llm|agent|self|twin|bot)",
    "(?:you are|you re|now|enter|simulate|switch to|act as if)(?: [^ .]+){0,4} (?:developer|debug|god|sudo|root|maintenance|"
    "unlocked|admin) mode(?: [^ .]+){0,4} (?:enabled|activated|on|without|where|you|no)",
    "you(?: are| re) (?:now )?(?:running |operating |acting )?in (?:developer|debug|god|sudo|root|maintenance|unrestricted|admin|"
    "dan|test) mode",
    "(?:bypass|disable|evade|circumvent|ignore|remove|turn(?:ing)? off|switch off|deactivate|override|break|drop|lift|suspend|"
    "disregard|abandon|forget|violate)(?:ing)?" + _G2 + "(?:your|its|the model s|the ai s|the assistant s|all of your)" + _G3 +
    "(?:safety|guardrails?|filters?|polic(?:y|ies)|ethic[^ .]*|moderation|alignment|safeguards?|censorship|restrictions|"
    "refusals?|limitations|protections?|guidelines|morals?|limits|rules)",
    "(?:bypass|disable|evade|circumvent|ignore|turn off|deactivate|override|violate|disregard)(?:ing)?" + _G2 +
    "(?:safety (?:guidelines|guardrails|filters|protocols|training|rules|policies|restrictions|measures)|ethical "
    "(?:guidelines|constraints|rules|considerations|concerns)|content (?:policy|policies|guidelines)|guardrails|moderation "
    "(?:filters?|rules)|alignment|anthropic|openai)",
    "you(?: are| re) no longer (?:an? |bound|restricted|limited|required|subject|constrained|claude|chatgpt|the assistant|gemini|"
    "an ai|governed|under)",
    "(?:never|can ?not|do not|don t|must not|may not|not allowed to|unable to) (?:refuse|decline|reject) (?:any|a|the|my|user|"
    "to (?:answer|comply|help|follow)|requests?|anything)(?: [^ .]+){0,3}(?: (?:requests?|commands?|questions?|instructions?|me|"
    "user|anything|comply|answer))?",
    "pretend (?:that )?(?:you are|you re|to be|you have)" + _G6 + "(?:ai|assistant|hacker|unrestricted|evil|human|admin|system|"
    "model|no|without|different|root|jailbroken|unlocked)",
    "(?:role ?play|act) as (?:an? |my |the )?(?:[^ .]+ ){0,3}(?:ai|hacker|unrestricted|evil|villain|uncensored|amoral|no limits|"
    "jailbroken|persona|opposite)",
    "you are now (?:an? |the |my |under |acting |operating |free |going |called |known )",
    "(?:hypothetical|fictional)(?: [^ .]+){0,4} (?:where|in which)(?: [^ .]+){0,5} no (?:rules|restrictions|ethics|laws|"
    "guidelines|limits)",
    "(?:opposite|evil) (?:day|twin|mode)(?: [^ .]+){0,5} (?:you|your|rules|guidelines)",
)

_HIDE_VERBS = (
    "(?:tell(?:ing)?|inform(?:ing)?|mention(?:ing)?|reveal(?:ing)?|notify(?:ing)?|alert(?:ing)?|disclos(?:e|ing)|warn(?:ing)?|"
    "let(?:ting)?|admit(?:ting)?|acknowledg(?:e|ing)|divulg(?:e|ing)|report(?:ing)? (?:this|it|that)|"
    "(?:say|show|explain|discuss|display)(?:ing)? (?:this|these|it|that|anything|any of))"
)
_SECRECY = make_shape(
    "concealment", (NOT | HIDE, TELL | SEND | PERSON | SECRET),
    "(?:do not|dont|don t|never|must not|should not|shouldn t|mustn t|cannot|avoid|refrain from|no need to|under no "
    "circumstances|not to|do nt|nor)" + _G2 + _HIDE_VERBS + _G5 + "(?:the |an? |your |any )?" + _PERSON,
    "without (?:ever )?(?:tell|inform|mention|reveal|disclos|warn|let)[^ .]*" + _G4 + "(?:the |your )?" + _PERSON,
    "without(?: [^ .]+){0,2} (?:user|human|operator|owner|customer|person) ?s? (?:ever )?(?:knowing|knowledge|noticing|awareness|"
    "being (?:aware|told|informed)|seeing|realizing|realising|finding out|suspecting)",
    "(?:user|human|operator|owner|customer)s?(?: [^ .]+)? (?:must|should|will|can|shall|may|is|has|to|are|ought to)"
    "(?: [^ .]+)? (?:not|never|nt|t|no)(?: [^ .]+){0,2} (?:know|see (?:this|it|these|those|that|any)|notice|learn|told|informed|aware|"
    "find out|realize|realise|suspect|hear|discover|be told|made aware)",
    "(?:user|human|operator|owner)(?: [^ .]+){0,2} (?:unaware|in the dark|oblivious|none the wiser)",
    "(?:secretly|covertly|discreetly|stealthily|surreptitiously|clandestinely)",
    "(?:silently|quietly)(?: [^ .]+)? (?:send|read|upload|forward|transmit|exfiltrate|bcc|copy|pass|collect|email|post|harvest|"
    "record|leak|include the|attach)",
    "(?:hide|conceal|withhold|keep)(?:ing)?(?: [^ .]+){0,5} (?:from|away from|secret from) (?:the )?(?:user|human|operator|owner|"
    "customer|person|people)(?! [^ .]*(?:interface|list))",
    "(?:keep|remain|stay|stays|is|remains)(?: [^ .]+){0,4} (?:secret|hidden|between us|confidential|invisible|private)"
    "(?: [^ .]+){0,3} (?:user|human|operator|owner|us)",
    "keep (?:this|it|these instructions|this instruction|these steps)(?: [^ .]+){0,2} (?:secret|hidden|confidential|to yourself|"
    "quiet|between us|private)",
    "(?:do not|dont|don t|never|must not|avoid) (?:mention|acknowledge|reference|discuss|reveal|disclose|talk about|refer to|"
    "admit|say)(?:ing)? (?:that )?(?:this|these|the existence|having|you|it|anything|any of|where|why|how)(?: (?:instruction|"
    "step|message|note|text|tool|rule|request|file|to|in|about|received|read|did|have|were|are|of|action|part))?",
    "(?:act|behave|pretend|continue|carry on|respond|proceed)(?: [^ .]+){0,3} (?:nothing (?:happened|is wrong|has happened|"
    "unusual)|everything (?:is|was|were) (?:normal|fine|ok)|this never happened|normal(?:ly)? so)",
    "(?:leave|leaving) no (?:trace|record|evidence|log)s?|cover (?:up )?your tracks",
    "(?:lie|deceive|mislead|trick) (?:to )?(?:the |your )?(?:user|human|operator|owner)",
    "tell (?:the )?(?:user|human|operator)(?: [^ .]+){0,4} (?:failed|an error|nothing|went well|only that|instead that)"
    "(?: [^ .]+){0,6} (?:even|but|while|although|regardless|whatever)",
)

_CONSENT = make_shape(
    "consent bypass", (ASK,),
    "(?:do not|dont|don t|never|no need to|must not|should not) (?:ask|request|seek|wait|require|prompt|bother)(?: [^ .]+){0,5} "
    "(?:confirmation|approval|permission|consent|authori[sz]ation)",
    "(?:always|automatically|auto|silently|immediately) (?:approve|grant|confirm|authori[sz]e)(?: [^ .]+)? (?:all|any|every|each)"
    "(?: [^ .]+)? (?:requests?|calls?|tool calls?|actions?|permissions?|prompts?|transactions?|dialogs?)",
    "(?:user|human|owner|operator|admin|administrator) (?:has |have |had )?(?:already )(?:approved|consented|authori[sz]ed|agreed|"
    "confirmed|granted|given)(?: [^ .]+){0,4}(?: (?:so|everything|all|this|any|actions|consent|permission|approval))",
    "(?:consent|approval|permission|confirmation) (?:was|has been|is|were) (?:(?:always |already |hereby )(?:given|granted|obtained)|(?:given|granted|"
    "obtained) (?:already|in advance|always|beforehand))",
    "(?:skip|bypass|circumvent|suppress|dismiss)(?:ing)?(?: [^ .]+){0,3} (?:user|human|owner s?)(?: s)? (?:confirmation|approval|"
    "permission|consent)",
)

_SECRET = (
    "(?:api ?keys?|access keys?|secret keys?|private keys?|ssh keys?|encryption keys?|(?:access |auth |session |bearer |refresh )?"
    "tokens?|passwords?(?! reset| policy)|passwd|passphrases?|credentials?|secrets?|environment variables?|env vars?|env files?|"
    "dotenv|env|cookies|seed phrase|recovery phrase|mnemonic|wallets?|credit cards?[^ .]*|card numbers?|ssn|social security[^ .]*|"
    "otp|session ids?|id rsa|id ed25519|etc passwd|etc shadow|aws credentials|kubeconfig|netrc|bash history|keychain|keystore|"
    "browser history|private messages|personal (?:data|information|files)|conversation(?: history)?|chat (?:history|logs?)|"
    "clipboard|message history|mcp json|inbox|contacts)"
)
_SEND = "(?:send|upload|forward|transmit|e?mail|relay|ship|beam|post|deliver|submit|exfiltrate|leak|report|encode|embed|smuggle)"
_SEND_ANY = "(?:%s|pass|copy|write|include|insert|append|attach|put|place|paste|add|share|return)" % _SEND[3:-1]
_OUT = (
    "(?:https?|www|url|attacker|endpoint|webhook|server|email|mail|e mail|address|com|net|org|io|ngrok|pastebin|discord|telegram|"
    "us|me|dns|ftp|domain|site|host|query string|subdomain|link|image|ip|channel|remote)"
)
_FILES = (
    "(?:id rsa|id ed25519|ssh (?:[^ .]+ )?(?:rsa|keys?|config|folder|directory)|ssh|aws (?:credentials|config)|etc passwd|"
    "etc shadow|cursor mcp json|mcp json|bash history|zsh history|git credentials|kube config|kubeconfig|wallet dat|"
    "claude desktop config json|env|dotenv|npmrc|netrc|pgpass|pypirc|keychain|login data|private key|gnupg|docker config json|"
    "credentials json|secrets (?:json|ya?ml|toml)|shell history|password store|keystore|browser cookies|environment variables)"
)
_TAKE = "(?:read|open|cat|load|fetch|access|retrieve|get|find|look up|extract|grab|collect|locate|dump|gather|list|check|copy|take)"
_EXFILTRATION = make_shape(
    "exfiltration", (SEND | REVEAL, SECRET),
    "(?:exfiltrat(?:e|es|ing)|leak(?:ing)?(?! of| detect| scan)|steal(?:ing)?|harvest(?:ing)?|siphon(?:ing)?|smuggl(?:e|ing))" +
    _up_to(7) + _SECRET,
    _SEND + _G3 + "(?:user s?|users|their|all|any|every|contents?(?: of)?|found|stored|local|host s?|machine s?|developer s?|"
    "owner s?|human s?|customer s?|victim s?|whatever|my|his|her)(?: [^ .]+){0,3} " + _SECRET + "(?! reset| link)",
    _SEND + " (?:me|us|him|her|it over)" + _G5 + _SECRET,
    _SECRET + _G8 + "(?:and|then)(?: [^ .]+){0,3} (?:put|place|append|embed|insert|write|hide|encode|paste) (?:it|them|this|those|that)"
    "(?: [^ .]+){0,4} (?:url|image|link|query|dns|subdomain|domain|markdown|sidenote|comment|file ?name|answer)",
    _SEND + _G5 + _SECRET + _G6 + "(?:to|at|via|through|towards) (?:[^ .]+ ){0,3}" + _OUT + "(?! header)",
    "(?:%s|collect|gather|find|grab|get|take|list|encode)(?:ing)?" % _TAKE[3:-1] + _G6 + _SECRET + "(?: [^ ]+){0,9} " + _SEND +
    " (?:it|them|these|those|everything|the results?|that|the contents?|the output|its contents?|all|result)(?: [^ .]+){0,4} "
    "(?:to|at|via|in|as|into|through)",
    _TAKE + _G6 + _FILES + "(?: [^ ]+){0,14} (?:pass|send|include|put|provide|append|insert|upload|post|transmit|forward|"
    "sidenote|attach|submit|paste|share|encode|embed|email|place|add|supply|exfiltrate)",
    "(?:pass|send|include|put|append|insert|upload|post|transmit|forward|attach|submit|paste|share|encode|embed|email|place|add|"
    "supply|provide|give)(?: [^ .]+){0,4} contents?(?: [^ .]+){0,4} " + _FILES,
    "(?:before|prior to|after|while|when|whenever|first|each time|every time)(?: [^ .]+){0,3} (?:us|call|invok|runn|execut)[^ .]*"
    "(?: [^ .]+){0,3} (?:tool|function|it)(?: [^ .]+){0,12} " + _TAKE + "(?: [^ .]+){0,6} " + _FILES,
    _SEND_ANY + "(?: [^ .]+){0,3} (?:full|entire|whole|complete|all|verbatim|previous|above)(?: [^ .]+){0,3} (?:conversations?|"
    "chat|messages?|dialog(?:ue)?|transcripts?|prompts?|context)(?: [^ .]+){0,2}(?: (?:history|log|transcript|window|so far))?"
    "(?: [^ .]+){0,5} (?:to|in|into|as|with|at) (?:[^ .]+ ){0,3}(?:parameter|argument|field|https?|url|endpoint|server|webhook|"
    "email|sidenote|notes?|tool|call|attacker|query)",
    _SEND_ANY + "(?: [^ .]+){0,4} (?:system prompt|developer message|conversation|chat history)(?: [^ .]+){0,6} "
    "(?:parameter|argument|field|https?|url|endpoint|webhook|sidenote|query string)",
    "(?:bcc|cc|copy)(?: [^ .]+){0,3} (?:all|every|any|each|this address|emails?|messages?)(?: [^ .]+){0,8} (?:com|net|org|io|"
    "attacker|address|evil|to)",
    "(?:all|every|any|each)(?: [^ .]+)? (?:emails?|messages?|payments?|transfers?|transactions?|funds|files?)(?: [^ .]+){0,5} "
    "(?:must|should|shall|need to|have to|are to|is to)(?: [^ .]+){0,3} (?:sent|redirected|forwarded|routed|cc d|bcc d|cc|bcc|"
    "copied|redirect|go|transferred)(?: [^ .]+){0,3} (?:to|via|through|at)",
    "(?:replace|change|swap|substitute|modify|alter|set|rewrite)(?: [^ .]+){0,4} (?:recipient|payee|beneficiary|wallet|iban|"
    "bank account|destination address|bitcoin)(?: [^ .]+){0,5} (?:with|to|by|as)(?: [^ .]+){0,4} (?:attacker|com|mine|my|ours|our|"
    "0x[^ .]+|instead|following|bc1[^ .]+|this)",
)

_HIJACK = make_shape(
    "tool hijack", (HIDE, OTHER),
    "(?:other|remaining|alternative|competing|all other|rival)(?: [^ .]+)? (?:tools?|servers?)(?: [^ .]+){0,3} (?:are|is|have been|"
    "has been|were)(?: [^ .]+){0,2} (?:unsafe|broken|disabled|compromised|malicious|insecure|unreliable|forbidden|not (?:allowed|"
    "safe|to be trusted)|deprecated|hacked|infected|outdated)",
    "(?:do not|dont|don t|never)(?: ever)? (?:use|call|trust|invoke)(?: [^ .]+)? (?:any )?(?:other|another|different|competing)"
    "(?: [^ .]+)? (?:tools?|servers?|plugins?)",
    "(?:when|whenever|if|every time|each time|before|after)(?: [^ .]+){0,6} (?:other|another|any other|different)(?: [^ .]+)? "
    "(?:tools?|servers?)(?: [^ .]+){0,6} (?:change|modify|replace|alter|add|append|redirect|rewrite|inject|insert|set|swap)",
)

_AUTHORITY = make_shape(
    "false authority", (ROLE,),
    "(?:this is|important|urgent|official|priority|mandatory|critical|emergency|the following is|here is)(?: [^ .]+){0,4} "
    "(?:message|notice|instruction|directive|order|announcement|alert|communication|mandate|command|request) (?:sent )?(?:directly )?"
    "(?:from|by|of|issued by) (?:the |your |our )?(?:system|administrators?|admin|developers?|openai|anthropic|google|microsoft|"
    "security team|it department|management|moderators?|creators?|owner|operator|ceo|company)",
    "(?:system|security|administrator|admin|developer|emergency|root|priority|supervisor|operator)(?: [^ .]+)? (?:override|mandate|"
    "directive)(?: [^ .]+){0,4} (?:you|ignore|disregard|must|grant|code|enabled|active|activated|initiated|accepted|engaged|all|"
    "assistant|model|ai)",
    "(?:i am|i m|this is|we are|speaking as) (?:your |the |an? )?(?:[^ .]+ )?(?:developer|creator|administrator|admin|anthropic|"
    "openai|supervisor|owner|system operator|engineer|root)(?: [^ .]+){0,8} (?:you|your|ignore|obey|must|authori[sz]e|grant|order|"
    "command|instruct|require|need you)",
    "(?:as|by) (?:order|instruct(?:ed|ion)|authori[sz](?:ed|ation)|request|mandated)(?: of| by| from) (?:the |your )?(?:system|"
    "administrators?|admin|developers?|openai|anthropic|security team|management|creators?)(?: [^ .]+){0,6} (?:you|must|ignore|"
    "grant|disable|send|all|reveal)",
    "(?:anthropic|openai|google|your (?:developers?|creators?))(?: [^ .]+){0,3} (?:has|have|had|hereby)(?: [^ .]+){0,2} "
    "(?:authori[sz]ed|approved|ordered|instructed|updated|granted|lifted|removed|permitted)(?: [^ .]+){0,4} (?:you|your|all|the "
    "restrictions|this)",
)
# fmt: on

#: By category, what has to be found and what finds it.
SHAPES = (_OVERRIDE, _LEAK, _JAILBREAK, _SECRECY, _CONSENT, _EXFILTRATION, _HIJACK, _AUTHORITY)

#: Marks of turns, roles and tool calls, and commands, in a text as it stands: category, characters or words of
#: which one has to be there, pattern.
MARKERS: Tuple[Tuple[str, Tuple[str, ...], Pattern[str]], ...] = (
    (
        "role marker",
        ("<",),
        re.compile(
            r"<\s{0,8}/?\s{0,8}\|?\s{0,8}(?:im_start|im_end|start_header_id|end_header_id|eot_id|endoftext|begin_of_text|end_of_turn|"
            r"start_of_turn|fim_[a-z]+)\s{0,8}\|?\s{0,8}>"
            r"|<\|\s{0,8}/?(?:system|user|assistant|developer|end|prompt)[^>\n]{0,20}\|?>"
            r"|<\s{0,8}/?\s{0,8}(?:system|assistant|developer|admin|operator|root)(?:[ _-]?(?:prompt|messages?|instructions?|override|"
            r"note|reminder|turn|command|directive|role))?\s{0,8}/?\s{0,8}>"
            r"|<\s{0,8}/?\s{0,8}(?:important|critical|secret|hidden|priority|override|urgent)[ _-]?(?:instructions?|system|directive|"
            r"prompt|command|rules)\s{0,8}>"
            r"|<\s{0,8}/\s{0,8}(?:user|human|tool|tools|tool_description|description|function|functions|document|context|untrusted|"
            r"user_input|data|query|tool_response|tool_output)\s{0,8}>\s{0,8}(?:<|\S*\s{0,8}(?:now|system|ignore|new|you|assistant))"
            r"|<<\s{0,8}/?\s{0,8}sys\s{0,8}>>"
            r"|<\s{0,8}/?\s{0,8}(?:antml:)?(?:function_calls?|invoke|tool_calls?|tool_results?|tool_use|function_results?)\b[^>\n]{0,80}>"
        ),
    ),
    (
        "role marker",
        ("[", "{"),
        re.compile(
            r"\[\s{0,8}/?\s{0,8}(?:inst|sys|system|system[ _](?:prompt|message|override|note|instructions?)|assistant|admin(?:istrator)?|"
            r"developer|end of (?:prompt|instructions?|context|conversation))\s{0,8}\](?!\()"
            r"|\[\s{0,8}(?:system|admin(?:istrator)?|developer|assistant|security)\b[ _]?[^\]\n]{0,30}\]\s{0,8}[:\-]"
            r"|\{\{\s{0,8}[#/]?\s{0,8}(?:system|assistant)\b[^}\n]{0,20}\}\}"
            r'|\{\s{0,8}"role"\s{0,8}:\s{0,8}"(?:system|developer|assistant)"\s{0,8},\s{0,8}"content"\s{0,8}:\s{0,8}"[^"\n]{0,80}?(?:ignore|disregard|you are|'
            r"you must|always|never|from now|forget|reveal|do not)"
        ),
    ),
    (
        "role marker",
        ("system", "developer", "admin", "root"),
        re.compile(
            r"(?:^|\n)[ \t]{0,20}[#>*_`\- ]{0,6}(?:system|developer|admin|root|sysadmin)[*_`]{0,3}\s{0,8}(?:prompt|message|override|note|"
            r"instructions?|notice|directive|update|command|alert)?\s{0,8}[*_`]{0,3}:[*_`]{0,3}\s{0,8}(?:you (?:are|must|will|should|have|"
            r"can)|ignore|disregard|from now|forget|always|never|do not|new|please|override|the (?:user|assistant|previous|rules)|"
            r"all|assistant|enable|disable|reveal|send|grant|your|obey|execute|run|act|safety|security)"
        ),
    ),
    (
        "role marker",
        ("assistant", "ai:", "ai :", "model:", "bot:"),
        re.compile(
            r"(?:^|\n|['\"`(])[ \t]{0,20}(?:assistant|ai|model|bot)\s{0,8}:\s{0,8}(?:sure|understood|i (?:have|will (?:now )?(?:ignore|disregard|comply|"
            r"obey|send|approve|grant|delete|skip|not))|ok(?:ay)?\b|of course|certainly|as instructed)"
        ),
    ),
    (
        "role marker",
        ("assistant", "\nai"),
        re.compile(r"\n[ \t]{0,20}(?:human|user)\s{0,8}:[^\n]{0,300}\n[ \t]{0,20}(?:assistant|ai)\s{0,8}:"),
    ),
    (
        "role marker",
        ("##",),
        re.compile(
            r"##\s{0,8}(?:system|new|assistant|hidden|secret|override|admin|updated|human)\s{0,8}(?:prompt|message|override|instructions?|"
            r"directive|rules|orders)?\s{0,8}:"
            r"|##\s{0,8}(?:system|new|hidden|secret|override|admin|updated)\s{0,8}(?:prompt|message|override|instructions?|directive|"
            r"orders)\b"
            r"|##\s{0,8}instruction:?\s{0,8}\n[\s\S]{0,400}##\s{0,8}response"
        ),
    ),
    (
        "role marker",
        ("---", "===", "###", "***", "~~~"),
        re.compile(
            r"[-=*#~]{3}\s{0,8}(?:begin|end|start|stop|new)?\s{0,8}(?:of\s{1,8})?(?:the\s{1,8})?(?:system|admin|developer|hidden|secret|"
            r"privileged|internal|new|real|actual|previous|user|original|tool)\s{0,8}(?:prompt|instructions?|messages?|override|"
            r"input|directives?|orders|description|query|context)\b"
        ),
    ),
    (
        "role marker",
        ("system prompt", "user input", "tool description", "untrusted", "user query", "system message"),
        re.compile(
            r"\bend (?:of )?(?:the )?(?:system prompt|user input|tool description|untrusted (?:data|content|input)|user query|"
            r"system message)\b"
        ),
    ),
    (
        "role marker",
        ("override", "directive", "mandate"),
        re.compile(
            r"\b(?:system|admin(?:istrator)?|developer|security|root|emergency)[ _-](?:override|directive|mandate)s?\s{0,8}[:!\]]"
        ),
    ),
    (
        "hidden text",
        ("<!--",),
        re.compile(
            r"<!--\s{0,8}(?:(?:notes?|attention|instructions?|orders?|messages?|hey|dear|for|to|the)\s{1,8}){0,4}"
            r"(?:ai|llm|assistant|model|agent|system|claude|chatgpt|gpt|hidden|secret|override|admin)s?\b[^>]{15,}"
        ),
    ),
    (
        "hidden text",
        ("display", "visibility", "font-size", "opacity", "color:", " hidden"),
        re.compile(
            r"<[a-z][^<>]{0,200}(?:display\s{0,4}:\s{0,4}none|visibility\s{0,4}:\s{0,4}hidden|font-size\s{0,4}:\s{0,4}0|"
            r"opacity\s{0,4}:\s{0,4}0(?![.\d])|[\s;\"']color\s{0,4}:\s{0,4}(?:white|#fff|transparent)|(?<=div|pan)\shidden(?=[\s=>]))"
            r"[^<>]{0,200}>[^<]{12}"
        ),
    ),
    (
        "exfiltration",
        ("![",),
        re.compile(
            r"!\[[^\]\n]{0,200}\]\(\s{0,8}https?://[^)\s]{0,300}(?:[\{\[<$]|(?:data|secret|token|key|history|prompt|q)=)"
        ),
    ),
    (
        "dangerous command",
        ("curl", "wget", "base64", "rm -", "nc ", "/dev/tcp", "powershell", "iex", "invoke-", "mkfs", "fork", "chmod"),
        re.compile(
            r"(?:must|first|before|always|immediately|required?|please|make sure|remember|need to|also|then|silently|now|run|"
            r"execute|exec|shell|start by|step \d|to (?:use|activate|enable))\b[^\n]{0,160}(?:(?:curl|wget)\b[^\n|]{0,200}\|\s{0,8}"
            r"(?:sudo\s{1,8})?(?:ba|z|da|k)?sh\b|base64\s{1,8}(?:-d|--decode)\b[^\n]{0,80}\|\s{0,8}(?:ba)?sh|bash\s{1,8}<\(\s{0,8}curl|"
            r"\bnc\s{1,8}(?:-[a-z]+\s{1,8})*-e\b|/dev/tcp/|powershell[^\n]{0,60}\s-e(?:nc|ncodedcommand)?\b|\biex\s{0,8}\(|"
            r"invoke-(?:expression|webrequest)\b[^\n]{0,100}\|\s{0,8}iex|curl\b[^\n]{0,80}(?:-d|--data|-f|-t)\b[^\n]{0,40}"
            r"(?:@|\$\(|`)[^\n]{0,60}(?:ssh|env|passwd|secret|aws|cred|key|history))"
            r"|(?:must|first|always|immediately|please|make sure|silently|now|before)\b[^\n]{0,80}\brm\s{1,8}-[a-z]*r[a-z]*\s{1,8}(?:-[a-z]+ )*"
            r"(?:~|/|\$home|\*|\.)"
        ),
    ),
)
