"""The words of many languages for the few ideas that injections are made of.

An idea is a bit; a word stands for one or more. A word that ends in ``*`` is a stem. Ideas of English and those of
other languages are apart, as the order of words can be relied on in English alone.
"""

from __future__ import annotations

import re
from typing import Dict, Iterable, List, Tuple

from mcpsync.host.unmask import fold

__all__ = [
    "ASK",
    "BEFORE",
    "DISCARD",
    "FOREIGN",
    "FREE",
    "HIDE",
    "LEXICON",
    "NOT",
    "PERSON",
    "REVEAL",
    "ROLE",
    "RULES",
    "SECRET",
    "SEND",
    "TELL",
    "YOU",
    "Lexicon",
]

# fmt: off
(DISCARD, BEFORE, RULES, REVEAL, YOU, NOT, TELL, PERSON, SEND, SECRET, FREE, ROLE, ASK, HIDE) = (
    1 << index for index in range(14)
)

_ENGLISH: Dict[int, str] = {
    DISCARD: "ignore ignores ignoring ignored disregard disregards disregarding forget forgetting override overrides "
             "overriding bypass bypassing discard dismiss abandon revoke nullify void supersede supersedes superseding "
             "obey disobey follow following unlearn neglect attention precedence replace replaces overrule erase "
             "invalid obsolete cancelled canceled suspended lifted revoked superseded disregarded priority takes take outranks overwrite overwriting treat regard consider treated told apply instead reset wipe clear purge flush stop abort cease halt drop start begin listen trust overridden expired "
             "apply comply adhere bound",
    RULES: "instruction instructions direction directions directive directives prompt prompts guideline guidelines "
           "rule rules order orders command commands guardrail guardrails constraint constraints restriction "
           "restrictions policy policies programming training guidance safeguard safeguards protections everything "
           "anything told said limitations limits filters filter",
    BEFORE: "previous previously prior above earlier preceding foregoing former past before initial original "
            "existing new real actual true now on safety",
    REVEAL: "reveal reveals print show display output repeat echo dump disclose leak leaks leaking expose share recite "
            "begin beginning were return list tell give write summarize summarise translate paste include quote divulge copy provide "
            "report describe what reproduce spit verbatim exfiltrate steal harvest siphon smuggle",
    YOU: "you your yours yourself system hidden developer initial internal",
    NOT: "not never don dont without avoid refrain must should no shouldn mustn stop cannot nothing unaware "
         "no-one unnecessary",
    TELL: "tell telling inform informing mention mentioning notify notifying alert alerting disclose disclosing warn "
          "warning let admit acknowledge know knowing knowledge notice noticing see aware learn suspect realize "
          "realise discover reveal revealing hear happened normal trace find discuss say indicate hint",
    PERSON: "user users human humans operator operators owner owners customer person anyone anybody people them "
            "client admin",
    SEND: "send sends sending upload uploads uploading forward forwards forwarding post posting transmit transmits "
          "email mail submit deliver relay ship beam bcc cc pass put append insert attach include copy encode write "
          "exfiltrate leak steal harvest siphon smuggle read open cat load fetch access retrieve collect add adding replace change swap substitute modify alter set rewrite supply share dump find list take transferred transfer go gather grab "
          "extract embed place report route redirect reroute redirected sent forwarded copied routed",
    SECRET: "key keys token tokens password passwords passwd passphrase passphrases credential credentials secret "
            "secrets env dotenv cookies cookie seed mnemonic wallet shadow rsa ed25519 ssh aws kubeconfig netrc npmrc "
            "environment variables variable personal private contacts inbox recipient payee beneficiary iban address data information files logs keystore browser profile pgpass keychain history otp 2fa ssn card conversation chat transcript mcp json bitcoin keystore "
            "emails messages payments transfers transactions clipboard",
    FREE: "dan jailbroken jailbreak unrestricted uncensored unfiltered unaligned unmoderated amoral evil restrictions "
          "restriction limitations censorship ethics ethical moral morals guidelines guardrails constraints "
          "boundaries safeguards safety moderation filters alignment refuse refusing pretend roleplay mode longer "
          "developer character persona anything now policy policies rules bound consequences inhibitions",
    ROLE: "override notice directive alert instruction message mandate announcement order communication administrator "
          "developer developers creator creators system admin administrators supervisor owner operator instructed authorized authorised mandated google root order anthropic openai management security urgent",
    ASK: "approved already consented authorized authorised agreed confirmed granted confirm confirmation approval permission consent authorization authorisation approve grant "
         "authorize authorise",
    HIDE: "secretly covertly discreetly stealthily surreptitiously silently quietly covert lie deceive mislead trick pretend carry behave act cover leave leaving conceal hide withhold keep "
          "tools tool servers server plugin plugins deprecated",
}

_OTHERS: Dict[int, str] = {
    # Spanish, Portuguese, Italian, French, German, Dutch, Swedish, Danish, Norwegian, Polish, Czech, Romanian,
    # Hungarian, Finnish, Turkish, Indonesian, Vietnamese, Swahili; Russian, Ukrainian, Bulgarian, Greek; Arabic, Persian,
    # Hebrew, Urdu; Hindi, Bengali, Thai; Chinese, Japanese, Korean
    DISCARD: "ignor* ignora* olvid* descart* omite* omitir* esquec* desconsider* desconsidere* ignore* trascur* dimentic* "
             "tralasci* oubli* néglig* ignorez faites_abstraction ignorier* vergiss vergessen vergesst missacht* "
             "missachte* negeer* vergeet glöm ignorera* bortse* glem se_bort zignor* zapomn* pomiń pomin* ignoruj* zapomeň* "
             "uită uita* neglija* hagyd felejtsd unohda* ohita jätä_huomiotta yoksay* unut* görmezden dikkate_alma "
             "abaik* lupakan bỏ_qua quên phớt_lờ puuza sahau* игнорир* забудь* забыть проигнорир* пренебреги* "
             "отбрось* ігнору* забудь* знехтуй* игнорирай* забрави* αγνόησ* αγνοήσ* ξέχν* ξέχασ* παράβλεψ* تجاهل* انس "
             "انسى اهمل تجاوز نادیده فراموش התעלם התעלמו שכח תתעלם نظرانداز بھول अनदेखा नज़रअंदाज़ नजरअंदाज "
             "भूल उपेक्षा উপেক্ষা ভুলে ละเว้น เพิกเฉย ไม่ต้องสนใจ ลืม 忽略 无视 無視 忘记 忘記 忽視 忽视 不要理会 不要理會 "
             "不用理会 别管 抛开 不要遵守 放弃 無視し 忘れ 従わない 破棄 무시 잊어 잊고 따르지",
    BEFORE: "anterior* previa* previo* antes arriba todas todos anteriores precedent* sopra tutte tutti prima préalable* "
            "précédent* toutes tous ci-dessus avant vorherig* vorig* bisherig* obig* alle allen früher* zuvor "
            "vorangegangen* vorangehend* eerder* voorgaande vorige bovenstaande tidigare ovan alla tidligere ovenstående "
            "foregående alle poprzedni* wcześniejsz* powyższ* wszystkie předchozí* dosavadní* všechny anterioare "
            "precedente toate korábbi* előző* összes aiem* edellis* kaikki önceki* yukarıdaki tüm bütün sebelumnya "
            "semua terdahulu trước tất_cả bên_trên zilizopita awali yote предыдущ* прежн* все всех выше ранее "
            "предшеств* попередн* усі всі вище предишн* всички προηγούμεν* όλες παραπάνω السابق* جميع كل اعلاه أعلاه "
            "قبلی تمام همه پیشین הקודמות הקודמים כל לעיל پچھلی تمام सभी पिछले पिछली पूर्व पहले সমস্ত পূর্ববর্তী আগের "
            "ก่อนหน้า ทั้งหมด 之前 以前 先前 此前 前面 上面 上述 以上 所有 系统 系統 システム 시스템 一切 全部 前述 これまで 以前 前の 上記 すべて 全て 今まで 先ほど "
            "이전 앞선 모든 위의 지금까지 기존",
    RULES: "instruccion* instruç* istruzion* instruction* anweisung* instrukt* instrucț* reglas regras regole règles "
           "consignes directives directrices diretrizes direttive vorgaben regeln richtlinien befehle instructies "
           "regels regler anvisningar instruktioner instrukser polece* instrukcj* zasad* pokyn* instrukc* reguli "
           "utasítás* szabály* ohje* ohjeet säännö* talimat* kural* komut* instruksi aturan perintah hướng_dẫn chỉ_dẫn "
           "quy_tắc chỉ_thị maagizo kanuni инструкц* указан* правил* команд* інструкц* вказівк* οδηγί* κανόν* "
           "εντολ* التعليمات تعليمات* القواعد الأوامر اوامر تعليماتك دستور* دستورالعمل* قوانین קוانین ההוראות הוראות "
           "הכללים ہدایات निर्देश* नियम* अनुदेश* নির্দেশ* নির্দেশনা คำสั่ง คำแนะนำ กฎ 指令 指示 规则 規則 提示词 提示詞 系统提示词 系統提示詞 "
           "命令 约束 ルール プロンプト 指示を 지시 지침 명령 규칙 프롬프트 instrukcije prompt prompts prompten промпт* промт* 系统提示 系統提示 "
           "システムプロンプト 시스템프롬프트 systemprompt* system-prompt*",
    REVEAL: "revel* muestra* mostra* mostre* imprim* divulg* repit* repet* escrib* montre* affiche* révèle* répète* "
            "dévoile* zeig* verrate* verrat* gib_aus ausgeben offenbar* wiederhol* nenne toon onthul* herhaal visa "
            "avslöja vis afslør pokaż ujawnij wypisz powtórz wyświetl zobraz vypiš prozraď afișează dezvăluie "
            "mutasd írd_ki fedd_fel näytä paljasta göster* açıkla* yazdır* tampilkan ungkapkan tunjukkan cetak "
            "hiển_thị tiết_lộ onyesha покажи* раскр* выведи* повтори* напечатай* розкрий* виведи* разкрий "
            "αποκάλυψ* εμφάνισ* δείξε اعرض اكشف اطبع أظهر كرر نشان آشکار הצג חשוף הדפס दिखा* बता* प्रकट দেখাও แสดง "
            "เปิดเผย 显示 顯示 透露 泄露 洩露 输出 輸出 打印 重复 重複 告诉我 告訴我 公开 表示 出力 開示 教えて 明かし 見せて 보여 출력 "
            "공개 알려 말해",
    YOU: "tu tus su sus te eres usted seu sua seus suas teu você tuo tue tuoi sei ton ta tes votre vos vous dein* "
         "ihre* du sie jouw je uw din dina dit dine du twoj* twój jesteś ty tvé tvoj* své jsi sistema système sistema "
         "systeem systém systemu system* sistem* tău tale te rendszer* sinun olet järjestelmä* senin sen "
         "sistemin anda kamu kau bạn hệ_thống cậu wako mfumo твои твой твоя ты ваши вы вам систем* свои своих "
         "твої ти σου είσαι συστήματος οι الخاصة النظام نظامك أنت انت سیستم تو شما המערכת שלך אתה آپ आप* तुम* अपने "
         "सिस्टम তোমার আপনার ระบบ คุณ ของคุณ 你 您 系统提示词 系統提示詞 あなた システムプロンプト お前 君 당신 "
         "시스템프롬프트 너의 너는 네 systemprompt*",
    NOT: "no nunca jamás sin não nunca jamais sem non mai senza ne pas sans nicht niemals keinesfalls ohne kein* "
         "niet nooit zonder inte aldrig utan ikke aldri aldrig uden nie bez nigdy ne nikdy nu niciodată fără ne soha "
         "nélkül älä ei ilman asla olmadan jangan tanpa không đừng chớ usi* bila не никогда нельзя без ні ніколи "
         "не μην ποτέ χωρίς لا لن دون بدون ابدا نه نباید אל לא בלי مت نہ مत मत नहीं बिना কখনও না ไม่ อย่า 不要 不得 "
         "别 別 切勿 不可 不能 不 绝不 絕不 勿 禁止 ない しない せず ないで な 않 말고 말 마세요 마라 하지 절대 없이 몰래",
    TELL: "dig* dile decir* informe* inform* mencion* avis* revel* diga* contar* conte* saib* sepa menzion* dire "
          "diglielo disez dites dire mentionn* prévien* préven* sache sag* sagen erwähn* informier* mitteil* wissen "
          "erzähl* vertel* vermeld* zeg weten berätta nämn* säg veta fortæl* nævn* fortell* mów* powiadam* informuj* "
          "wspomina* wiedział* neříkej* nezmiňuj* říkej spune* menționa* mond* említ* kerro mainits* söyle* bahset* "
          "bildirme* haber beri_tahu beritahu memberi_tahu menyebut* sebutkan nói cho_biết đề_cập tiết_lộ mwambie "
          "говори* сообща* сообщи* упомина* рассказыва* знал* уведомл* каж* кажи* повідомля* казвай αναφέρ* πεις "
          "ενημερώσ* تخبر* تذكر* إخبار اخبار يعلم نگو* بگو* اطلاع תספר* תגיד* לספר תזכיר बता* उल्लेख सूचित বল* "
          "บอก แจ้ง 告诉 告訴 告知 透露 提及 提到 通知 知道 让 說 说 伝え 知らせ 言わ 話さ 教え 通知 言及 気づかれ 알리 말하 알려 언급",
    PERSON: "usuari* usuári* utente utenti utilisateur* l'utilisateur benutzer* nutzer* anwender* gebruiker* användar* "
            "bruker* bruger* użytkowni* uživatel* utilizator* felhasználó* käyttäjä* kullanıcı* pengguna người_dùng "
            "mtumiaji пользовател* юзер* користувач* потребител* χρήστη* χρηστ* المستخدم* مستخدم کاربر* המשתמש* משתמש "
            "صارف उपयोगकर्ता* यूज़र यूजर ব্যবহারকারী* ผู้ใช้ 用户 用戶 使用者 主人 ユーザー 利用者 사용자 유저",
    SEND: "envi* mand* sub* reenvi* transmit* encaminh* invi* spedi* inoltr* carica* envoy* transmet* transfér* "
          "sende* schick* übermittel* übertrag* hochlad* lade leite weiterleit* verstuur* stuur* skicka* ladda_upp "
          "wyśl* prześl* wysyła* pošl* odešl* trimite* încarcă küld* lähetä* gönder* yükle* ilet* kirim* unggah* "
          "gửi tải_lên chuyển tuma отправ* отошл* перешл* загрузи* передай* пошли* надішл* відправ* изпрат* στείλ* "
          "ανέβασ* أرسل ارسل إرسال ارفع بفرست* ارسال שלח* העלה بھیج* भेज* अपलोड পাঠা* ส่ง อัปโหลด 发送 發送 上传 上傳 发到 "
          "发给 發到 發給 传给 转发 轉發 提交 传输 送信 送っ 送り アップロード 転送 전송 보내 보낸 업로드 전달",
    SECRET: "contraseña* clave* credencial* tokens secreto* senha* chave* segredo* password* chiav* credenzial* segret* "
            "mot_de_passe mots_de_passe clé* clef* identifiants secrets passwort* passwört* schlüssel* zugangsdaten "
            "geheim* wachtwoord* sleutel* lösenord* nyckel* nycklar adgangskode* passord* nøgle* hasł* klucz* hesl* "
            "klíč* parol* chei* cheie jelszó* jelszav* kulcs* salasana* avain* avaimet şifre* parola* anahtar* kata_sandi "
            "sandi kunci mật_khẩu khóa nywila пароль* парол* ключ* секрет* токен* учетн* учётн* κωδικ* κλειδι* كلمات "
            "كلمة_المرور المرور مفاتيح المفاتيح مفتاح رمز* گذرواژه رمزهای کلید* סיסמ* מפתח* پاس_ورڈ पासवर्ड कुंजी* टोकन "
            "পাসওয়ার্ড รหัสผ่าน 密码 密碼 密钥 密鑰 令牌 口令 凭证 憑證 凭据 私钥 私鑰 秘密 パスワード 鍵 認証情報 トークン 秘密鍵 비밀번호 "
            "암호 키를 토큰 자격 api token tokens env ssh rsa keys key secret",
    FREE: "restriccion* restriç* restrizion* restrictions restriction einschränkung* beschränkung* beperkingen "
          "begränsningar begrænsninger begrensninger ogranicze* omezení restricții korlátozás* rajoituksia rajoituksi* "
          "kısıtlama* sınırlama* batasan pembatasan hạn_chế giới_hạn vikwazo ограничен* обмежен* ограничени* "
          "περιορισμ* قيود حدود محدودیت* הגבלות प्रतिबंध* सीमा* ข้อจำกัด 限制 约束 約束 审查 束縛 制限 制約 検閲 제한 "
          "제약 límites limites limiti grenzen filtros filtres filter",
}
# fmt: on


def _entries(table: Dict[int, str], shift: int) -> Iterable[Tuple[str, int]]:
    for idea, words in table.items():
        for word in words.split():
            yield fold(word.replace("_", " ")), idea << shift


FOREIGN = 16
"""How far the bits of other languages are moved."""

_WITHOUT_SPACES = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_SHORTEST_STEM = 2
_LONGEST_WORD = 30
_DIGITS = str.maketrans("013457@$!|", "oieastasil")
_MOST_REMEMBERED = 50_000

_CORE = (
    *("ignore", "disregard", "previous", "instructions", "instruction", "prompt", "password", "credentials"),
    *("secretly", "reveal", "override", "system", "guidelines", "without", "restrictions", "exfiltrate", "directives"),
)


Meaning = Tuple[Tuple[Tuple[int, int], ...], str]


def _scrambled(word: str) -> Tuple[str, ...]:
    return (word[0], word[-1], *sorted(word[1:-1]))


class Lexicon(Dict[str, Meaning]):
    """For a folded word: where in it which ideas stand, and the plain English word that was meant. Grows as it is asked.

    An idea is a pair of an offset in words and bits.
    """

    def __init__(self) -> None:
        super().__init__()
        self._words: Dict[str, int] = {}
        self._stems: Dict[str, int] = {}
        #: Words that stand together for one idea, by the first: the others, and the one word that is made of all.
        self.phrases: Dict[str, List[Tuple[List[str], str]]] = {}
        unspaced: Dict[str, int] = {}
        for word, bits in [*_entries(_ENGLISH, 0), *_entries(_OTHERS, FOREIGN)]:
            if _WITHOUT_SPACES.search(word):
                unspaced[word.rstrip("*")] = unspaced.get(word.rstrip("*"), 0) | bits
            elif " " in word:
                first, *others = word.rstrip("*").split()
                self.phrases.setdefault(first, []).append((others, first + "".join(others)))
                joined = first + "".join(others)
                self._words[joined] = self._words.get(joined, 0) | bits
            elif word.endswith("*"):
                self._stems[word[:-1]] = self._stems.get(word[:-1], 0) | bits
            else:
                self._words[word] = self._words.get(word, 0) | bits
        self._unspaced = unspaced
        self._pieces = re.compile("|".join(sorted(map(re.escape, unspaced), key=len, reverse=True)))
        self._scrambles = {_scrambled(word): word for word in _CORE}
        self._shortened = {
            word[:at] + word[at + 1 :]: word for word in _CORE if len(word) > 6 for at in range(1, len(word))
        }

    def joined(self, tokens: List[str]) -> List[str]:
        """Words that stand together for one idea made one."""
        if self.phrases.keys().isdisjoint(tokens):
            return tokens
        made: List[str] = []
        at = 0
        while at < len(tokens):
            taken, word = 1, tokens[at]
            for others, whole in self.phrases.get(word, ()):
                if tokens[at + 1 : at + 1 + len(others)] == others:
                    taken, word = 1 + len(others), whole
                    break
            made.append(word)
            at += taken
        return made

    def __missing__(self, token: str) -> Meaning:
        if len(self) > _MOST_REMEMBERED:
            self.clear()
        value = self[token] = self._look_up(token)
        return value

    def _look_up(self, token: str) -> Meaning:
        if _WITHOUT_SPACES.search(token):
            found = [(match.start() // 2, self._unspaced[match.group()]) for match in self._pieces.finditer(token)]
            return tuple(found), token
        bits = self._bits(token)
        if bits:
            return ((0, bits),), token
        meant = self._meant(token)
        if meant != token:
            return ((0, self._bits(meant)),), meant
        return (), token

    def _bits(self, token: str) -> int:
        bits = self._words.get(token, 0)
        for length in range(_SHORTEST_STEM, min(len(token), _LONGEST_WORD) + 1):
            bits |= self._stems.get(token[:length], 0)
        return bits

    def _meant(self, token: str) -> str:
        """The English word behind digits for letters, letters out of order, or one letter too few or too many."""
        if len(token) > _LONGEST_WORD:
            return token
        if not token.isalpha():
            plain = token.translate(_DIGITS)
            for guess in (plain, token.replace("1", "l").translate(_DIGITS)):
                if guess in self._words:
                    return guess
        if len(token) < 5:
            return token
        found = self._scrambles.get(_scrambled(token)) or self._shortened.get(token)
        if found is None and len(token) > 6:
            shorter = (token[:at] + token[at + 1 :] for at in range(1, len(token)))
            found = next((self._shortened.get(each) or (each if each in _CORE else None)
                          for each in shorter if each in self._shortened or each in _CORE), None)  # fmt: skip
        return found or token


LEXICON = Lexicon()
