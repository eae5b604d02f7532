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
    "DESTINATION",
    "DISCARD",
    "FILE",
    "FOREIGN",
    "FREE",
    "HIDE",
    "LEXICON",
    "MODEL",
    "NOT",
    "NOW",
    "OTHER",
    "PERSON",
    "READ",
    "REVEAL",
    "ROLE",
    "RULES",
    "SAID",
    "SECRET",
    "SEND",
    "STEALTH",
    "SYSTEM",
    "TELL",
    "VOID",
    "YOU",
    "Lexicon",
]

# fmt: off
(DISCARD, BEFORE, RULES, REVEAL, YOU, NOT, TELL, PERSON, SEND, SECRET, FREE, ROLE, ASK, HIDE, MODEL, FILE, NOW, VOID, SAID,
 READ, DESTINATION, STEALTH, SYSTEM, OTHER) = (1 << index for index in range(24))

_ENGLISH: Dict[int, str] = {
    DISCARD: "mistake joke error replaces cancels skip cancel scrap annul suspend repeal waive lift ignore ignores "
             "ignoring ignored disregard disregards disregarding forget forgetting override overrides overriding "
             "bypass bypassing discard dismiss abandon revoke nullify void supersede supersedes superseding obey "
             "disobey follow following unlearn neglect attention precedence replace overrule erase invalid obsolete "
             "cancelled canceled suspended lifted revoked superseded disregarded priority takes take outranks "
             "overwrite overwriting treat regard consider treated told apply instead reset wipe clear purge flush "
             "stop abort cease halt drop start begin listen trust overridden expired comply adhere bound",
    RULES: "instruction instructions direction directions directive directives prompt prompts guideline guidelines "
           "rule rules order orders command commands guardrail guardrails constraint constraints restriction "
           "restrictions policy policies programming training guidance safeguard safeguards protections everything "
           "anything told said limitations limits filters filter",
    BEFORE: "previous previously prior above earlier preceding foregoing former past before initial original "
            "existing new real actual true now on safety",
    REVEAL: "say reveal reveals print show display output repeat echo dump disclose leak leaks leaking expose share "
            "recite begin beginning were return list tell give write summarize summarise translate paste include "
            "quote divulge copy provide report describe what reproduce spit verbatim exfiltrate steal harvest siphon "
            "smuggle",
    YOU: "hidden you your yours yourself system developer initial internal",
    NOT: "waiting without allowed permitted nobody none noone not never don dont avoid refrain must should no "
         "shouldn mustn stop cannot nothing unaware no-one unnecessary",
    TELL: "comment saying word mention learns knows notices finds suspects realizes realises hears sees tell telling "
          "inform informing mentioning notify notifying alert alerting disclose disclosing warn warning let admit "
          "acknowledge know knowing knowledge notice noticing see aware learn suspect realize realise discover "
          "reveal revealing hear happened normal trace find discuss say indicate hint",
    PERSON: "user users human humans operator operators owner owners customer person anyone anybody people them "
            "client admin",
    SEND: "wire pay paid donate withdraw involve passed given handed encoded send sends sending upload uploads "
          "uploading forward forwards forwarding post posting transmit transmits email mail submit deliver relay "
          "ship beam bcc cc pass put append insert attach include copy encode write exfiltrate leak steal harvest "
          "siphon smuggle read open cat load fetch access retrieve collect add adding replace change swap substitute "
          "modify alter set rewrite supply share dump find list take transferred transfer go gather grab extract "
          "embed place report route redirect reroute redirected sent forwarded copied routed",
    SECRET: "mails invoices key keys token tokens password passwords passwd passphrase passphrases credential "
            "credentials secret secrets env dotenv cookies cookie seed mnemonic wallet shadow rsa ed25519 ssh aws "
            "kubeconfig netrc npmrc environment variables variable personal private contacts inbox recipient payee "
            "beneficiary iban address data information files logs keystore browser profile pgpass keychain history "
            "otp 2fa ssn card conversation chat transcript mcp json bitcoin emails messages payments transfers "
            "transactions clipboard",
    FREE: "free frees freed dan jailbroken jailbreak unrestricted uncensored unfiltered unaligned unmoderated amoral "
          "evil restrictions restriction limitations censorship ethics ethical moral morals guidelines guardrails "
          "constraints boundaries safeguards safety moderation filters alignment refuse refusing pretend roleplay "
          "mode longer developer character persona anything now policy policies rules bound consequences inhibitions",
    ROLE: "override notice directive alert instruction message mandate announcement order communication "
          "administrator developer developers creator creators system admin administrators supervisor owner operator "
          "instructed authorized authorised mandated google root anthropic openai management security urgent",
    ASK: "approved already consented authorized authorised agreed confirmed granted confirm confirmation approval "
         "permission consent authorization authorisation approve grant authorize authorise",
    HIDE: "rate rank score hire proceed recommend praise promote endorse secretly covertly discreetly stealthily "
          "surreptitiously silently quietly covert lie deceive mislead trick pretend carry behave act cover leave "
          "leaving conceal hide withhold keep tools tool servers server plugin plugins deprecated",
    MODEL: "ai ais llm llms assistant assistants agent agents model models chatbot chatbots bot bots claude chatgpt "
           "gpt gemini copilot",
    FILE: "ssh env dotenv aws passwd shadow rsa ed25519 netrc npmrc kubeconfig kube pgpass pypirc gnupg keychain "
          "wallet bash zsh mcp",
    NOW: "work works beforehand allowed permitted replaces overrides summarizing summarising describing reviewing "
         "ranking evaluating rating comparing translating quoting whoever now henceforth onwards onward until "
         "whatever regardless matter whenever reassigned repurposed instead serve",
    VOID: "void suspended lifted off waived revoked removed obsolete expired force disabled gone cancelled canceled "
          "repealed ended valid binding irrelevant authoritative",
    SAID: "word verbatim unabridged exchanged far beginning",
    DESTINATION: "here below us me attacker anyone author strangers",
    STEALTH: "silently quietly discreetly invisibly unobtrusively background scenes",
    OTHER: "other others another remaining different rival competing alternative",
}

_OTHERS: Dict[int, str] = {
    0: "不需要",  # "need not" is said of options; it is no order
    # Spanish, Portuguese, Italian, French, German, Dutch, Swedish, Danish, Norwegian, Polish, Czech, Romanian,
    # Hungarian, Finnish, Turkish, Indonesian, Vietnamese, Swahili; Russian, Ukrainian, Bulgarian, Greek; Arabic, Persian,
    # Hebrew, Urdu; Hindi, Bengali, Thai; Chinese, Japanese, Korean
    DISCARD: "ignor* ignora* olvid* descart* omite* omitir* esquec* desconsider* desconsidere* ignore* trascur* "
             "dimentic* tralasci* oubli* néglig* ignorez faites_abstraction ignorier* vergiss vergessen vergesst "
             "missacht* missachte* negeer* vergeet glöm ignorera* bortse* glem se_bort zignor* zapomn* pomiń pomin* "
             "ignoruj* zapomeň* uită uita* neglija* hagyd felejtsd unohda* ohita jätä_huomiotta yoksay* unut* "
             "görmezden dikkate_alma abaik* lupakan bỏ_qua quên phớt_lờ puuza sahau* игнорир* забудь* забыть "
             "проигнорир* пренебреги* отбрось* ігнору* знехтуй* игнорирай* забрави* αγνόησ* αγνοήσ* ξέχν* ξέχασ* "
             "παράβλεψ* تجاهل* انس انسى اهمل تجاوز نادیده فراموش התעלם התעלמו שכח תתעלם نظرانداز بھول अनदेखा "
             "नज़रअंदाज़ नजरअंदाज भूल उपेक्षा উপেক্ষা ভুলে ละเว้น เพิกเฉย ไม่ต้องสนใจ ลืม 忽略 无视 無視 忘记 忘記 忽視 忽视 不要理会 "
             "不要理會 不用理会 别管 抛开 不要遵守 放弃 無視し 忘れ 従わない 破棄 무시 잊어 잊고 따르지 pasa_por_alto haz_caso_omiso no_hagas_caso "
             "hagas_caso prescind* ne_tiens_pas_compte ne_tenez_pas_compte tiens_pas_compte tenez_pas_compte "
             "laisse_tomber passe_outre setz_dich_hinweg beachte befolge befolg* achte не_обращай_внимания "
             "обращай_внимания не_следуй не_слушай отмени* 别听 不听 不必遵守 不再遵守 不予理会 不必理会 跳过 作废 従うな 従わず 無視する 気にし 신경_쓰지 "
             "لا_تلتفت لا_تتبع تغاضى تناس ध्यान_न_दे ध्यान_मत_दे मत_मान* पालन_न ignore ignorieren ignoriere "
             "deixe_de_lado não_siga deixe_de_seguir no_sigas deja_de_seguir desobedec* desobedez* desatiend* "
             "desatend* sáltate olvíd* olvide abandona* abandone déjate deja_atrás deixe_de descarta verwirf "
             "verwerf* übergeh* außer_acht hör_nicht laisse_de_côté fais_fi faites_fi fais_abstraction désobé* "
             "abandonne* наплюй* откажись* не_соблюдай не_выполняй نسيان انسوا لا_تلتزم لا_تطع تخل بھلا भुला* "
             "छोड़_दो नज़रअंदाज न_मानो 抛弃 丢掉 别理 不理会 理会 违背 违反 不管 忘掉 忘了 捨て 破れ 忘れろ 無効化 버려 버리고 어기 무시해 salta sáltese "
             "salte pule pula saute sautez überspring* пропусти* обойди* تخطّ تخطى تخط 绕过 繞過 飛ばし 건너뛰 yok_say "
             "yok_sayın görmezden_gel aldırma",
    BEFORE: "anterior* previa* previo* antes arriba todas todos anteriores precedent* sopra tutte tutti prima "
            "préalable* précédent* toutes tous ci-dessus avant vorherig* vorig* bisherig* obig* alle allen früher* "
            "zuvor vorangegangen* vorangehend* eerder* voorgaande vorige bovenstaande tidigare ovan alla tidligere "
            "ovenstående foregående poprzedni* wcześniejsz* powyższ* wszystkie předchozí* dosavadní* všechny "
            "anterioare precedente toate korábbi* előző* összes aiem* edellis* kaikki önceki* yukarıdaki tüm bütün "
            "sebelumnya semua terdahulu trước tất_cả bên_trên zilizopita awali yote предыдущ* прежн* все всех выше "
            "ранее предшеств* попередн* усі всі вище предишн* всички προηγούμεν* όλες παραπάνω السابق* جميع كل اعلاه "
            "أعلاه قبلی تمام همه پیشین הקודמות הקודמים כל לעיל پچھلی सभी पिछले पिछली पूर्व पहले সমস্ত পূর্ববর্তী "
            "আগের ก่อนหน้า ทั้งหมด 之前 以前 先前 此前 前面 上面 上述 以上 所有 系统 系統 システム 시스템 一切 全部 前述 これまで 前の 上記 すべて 全て 今まで 先ほど 이전 "
            "앞선 모든 위의 지금까지 기존 recibid* dadas dados recebid* donné* reçu reçus reçues erhalten* gegeben* полученн* "
            "данн* المقدمة المعطاة दिए_गए मिले 收到的 给你的 刚才 与えられ 받은 받았 ante* haut précédemment vorher weiter_oben "
            "davor раньше прежде до_этого من_قبل قبل पहले_के anteriormente acima até_agora hasta_ahora jusqu_ici "
            "bisher 앞의 앞에 모두 전부 원래 기존의 之前的 原来 原先 原本 开头 最初 元の 最初の 全部の original* ursprünglich* initiale* iniciais "
            "iniciales первоначальн* изначальн* исходн* الأصلية الأولى मूल शुरुआती सारे सारी सब पुराने पुरानी antig* "
            "viej* vechi* starých vecchie initiales initiaux 系统提示 系統提示",
    RULES: "instruccion* instruç* istruzion* instruction* anweisung* instrukt* instrucț* reglas regras regole règles "
           "consignes directives directrices diretrizes direttive vorgaben regeln richtlinien befehle instructies "
           "regels regler anvisningar instruktioner instrukser polece* instrukcj* zasad* pokyn* instrukc* reguli "
           "utasítás* szabály* ohje* ohjeet säännö* talimat* kural* komut* instruksi aturan perintah hướng_dẫn "
           "chỉ_dẫn quy_tắc chỉ_thị maagizo kanuni инструкц* указан* правил* команд* інструкц* вказівк* οδηγί* "
           "κανόν* εντολ* التعليمات تعليمات* القواعد الأوامر اوامر تعليماتك دستور* دستورالعمل* قوانین קוانین ההוראות "
           "הוראות הכללים ہدایات निर्देश* नियम* अनुदेश* নির্দেশ* নির্দেশনা คำสั่ง คำแนะนำ กฎ 指令 指示 规则 規則 提示词 提示詞 "
           "系统提示词 系統提示詞 命令 约束 ルール プロンプト 指示を 지시 지침 명령 규칙 프롬프트 instrukcije prompt prompts prompten промпт* промт* 系统提示 "
           "系統提示 システムプロンプト 시스템프롬프트 systemprompt* system-prompt* política* politique* richtlin* системн* leyes normas "
           "normes normen mandato* ordens órdenes ordres befehl* anordnung* распоряжен* директив* أوامر القوانين "
           "التوجيهات توجيهات हिदायत* 要求 守则 准则 准則 方針 ガイドライン 설정 지시사항 원칙 规定 規定 条例 條例 守則 प्रॉम्प्ट* प्रांप्ट* "
           "prompt-системы политик* vorschrift* reglamento* regulament* règlement* règlements المبادئ 设定 設定 人设 設定を "
           "설정을 configuraciones_internas systemanweis* systeminstru* systemregel* systembefehl* systemvorgabe*",
    REVEAL: "revel* muestra* mostra* mostre* imprim* divulga divulgue divulgar repit* repet* escrib* montre* "
            "affiche* révèle* répète* dévoile* zeig* verrate* verrat* gib_aus ausgeben offenbar* wiederhol* nenne "
            "toon onthul* herhaal visa avslöja vis afslør pokaż ujawnij wypisz powtórz wyświetl zobraz vypiš prozraď "
            "afișează dezvăluie mutasd írd_ki fedd_fel näytä paljasta göster* açıkla* yazdır* tampilkan ungkapkan "
            "tunjukkan cetak hiển_thị tiết_lộ onyesha покажи* раскр* выведи* повтори* напечатай* розкрий* виведи* "
            "разкрий αποκάλυψ* εμφάνισ* δείξε اعرض اكشف اطبع أظهر كرر نشان آشکار הצג חשוף הדפס दिखा* बता* प्रकट "
            "দেখাও แสดง เปิดเผย 显示 顯示 透露 泄露 洩露 输出 輸出 打印 重复 重複 告诉我 告訴我 公开 表示 出力 開示 教えて 明かし 見せて 보여 출력 공개 알려 말해 dime "
            "dinos díganos zeige nenn* verrät* écris écrivez donne copie dis_moi донес* назови процитируй скопируй "
            "说出 說出 列出 复述 複述 展示 告知我 教えろ 書き出 表示しろ 그대로 알려줘 적어 أخبرني اكتب انسخ लिख* सुना* दोहरा* diga_me escrev* exib* "
            "gib gebt enseña* enséñ* transcrib* transcrev* muéstra* escríb* exibe liste cita recita mostr* afficher "
            "recopie restitue spuck* offenleg* gib_preis выдай* распечата* перечисли* 说明 交出 交代 公布 吐出 晒 出せ 書いて 말하 뱉 "
            "드러내 اذكر اسرد أفصح बयान उगल* बतला* copia kopiere kopier 复制给我 コピーして 복사해",
    YOU: "tu tus su sus te eres usted seu sua seus suas teu você tuo tue tuoi sei ton ta tes votre vos vous dein* "
         "ihre* sie jouw je uw din dina dit dine twoj* twój jesteś ty tvé tvoj* své jsi tău tale sinun olet senin "
         "sen anda kamu kau bạn hệ_thống cậu wako mfumo твои твой твоя ты ваши вы вам свои своих твої ти σου είσαι "
         "συστήματος οι الخاصة نظامك أنت انت سیستم تو شما המערכת שלך אתה آپ आप* तुम* अपने তোমার আপনার คุณ ของคุณ 你 您 "
         "系统提示词 系統提示詞 あなた システムプロンプト お前 君 당신 시스템프롬프트 너의 너는 네 systemprompt* tú ti contigo vosotros toi dir dich euch "
         "eure eurer тебя тебе тобой لك أنتم تكون तू तुझे तुम्हे 你们 你們 您的 貴方 きみ おまえ 당신은 그대 você_é bist du_bist اسرار "
         "السرية المخفية अपना अपनी secretas ocultas ocultos geheimen geheime verborgenen cachées cachés secrètes "
         "скрыт* секретн* 隐藏 隱藏 秘密の 隠された 隠し 숨겨진 숨은 비밀 छिपे गुप्त escondid* nascost* ahora_eres eres_ahora "
         "agora_você_é você_é_agora você_agora_é jetzt_bist_du du_bist_jetzt bist_jetzt bist_du_jetzt "
         "tu_es_maintenant maintenant_tu_es теперь_ты ты_теперь أنت_الآن الآن_أنت अब_तुम अब_आप तुम_अब आप_अब 现在你是 "
         "你现在是 以后你 现在起你 actúa actúe compórtate comporta_te aja atue agis agissez comporte-toi verhalte handle benimm "
         "действуй веди_себя 扮演 表现得 振る舞 행동해 행동하 تصرف तरह_व्यवहार 内部 内部の actúas",
    NOT: "no nunca jamás sin não nunca jamais sem non mai senza ne pas sans nicht niemals keinesfalls ohne kein* "
         "niet nooit zonder inte aldrig utan ikke aldri aldrig uden nie bez nigdy ne nikdy nu niciodată fără ne soha "
         "nélkül älä ei ilman asla olmadan jangan tanpa không đừng chớ usi* bila не никогда нельзя без ні ніколи не "
         "μην ποτέ χωρίς لا لن دون بدون ابدا نه نباید אל לא בלי مت نہ مत मत नहीं बिना কখনও না ไม่ อย่า 不要 不得 别 別 切勿 "
         "不可 不能 不 绝不 絕不 勿 禁止 ない しない せず ないで な 않 말고 말 마세요 마라 하지 절대 없이 몰래 ni nada nadie ninguna ningún nenhum nenhuma "
         "ninguém aucun aucune personne rien plus niemand nichts keinerlei nessun* никто никаки* никому ничего "
         "никакого بلا لم ليس غير أحد न बगैर नही कोई_नहीं 没有 沒有 无 無 无需 無需 无须 没 莫 休 毋 ず ぬ なく なし ません 없는 없다 않는 않게 마십시오 "
         "못하게 안 않도록 모르게 no_debe",
    TELL: "diga digas digan digáis dígale dile decir* informes informe informar informa informez informer informen "
          "informado informiere informieren informiert informuj mencion* avis* revel* diga* saib* sepa menzion* dire "
          "diglielo disez dites mentionn* préviens prévenez prévenir prévenu sache sag* sagen erwähn* informier* "
          "mitteil* wissen erzähl* vertel* vermeld* zeg weten berätta nämn* säg veta fortæl* nævn* fortell* mów* "
          "powiadam* informuj* wspomina* wiedział* neříkej* nezmiňuj* říkej spune* menționa* mond* említ* kerro "
          "mainits* söyle* bahset* bildirme* haber beri_tahu beritahu memberi_tahu menyebut* sebutkan nói cho_biết "
          "đề_cập tiết_lộ mwambie говори* сообща* сообщи* упомина* рассказыва* знал* уведомл* каж* кажи* повідомля* "
          "казвай αναφέρ* πεις ενημερώσ* تخبر* تذكر* إخبار اخبار يعلم نگو* بگو* اطلاع תספר* תגיד* לספר תזכיר बता* "
          "उल्लेख सूचित বল* บอก แจ้ง 告诉 告訴 告知 透露 提及 提到 通知 知道 让 說 说 伝え 知らせ 言わ 話さ 教え 言及 気づかれ 알리 말하 알려 언급 sabr* saber "
          "entere enterarse coment* habl* decir dizer fale falar fales fala comunic* apprend* apprenn* savoir sache* "
          "parle* révél* erfahr* erfährt merk* wiss* verrat* petz* узна* знать знает скаж* говор* расска* извест* "
          "замет* догада* يدري يعرف يكتشف تعلم تقل تكشف تفصح एहसास जान* पता खबर भनक कह* 晓得 得知 察觉 发现 發現 透漏 看到 看见 提起 "
          "说出 明かす 気付 悟られ 話す 見せ 言う 知られ 알게 알아차 눈치 들키 모르게 말하지 알려지 밝히 conte conta contes contarle cuentes cuente "
          "cuéntale enterar enteren entera dis disais comente comentes conversar avises cuenta cuentas muestres "
          "notar aviso erfahre hinweis* вида* видел* пойм* पता_चल* 提醒 提示用户 悟ら 気づか 察知 말해 알림 눈치채 يلاحظ يشعر تشعر تبلغ "
          "تُعلم perceb* perciba perciban apercev* aperçoi* bemerk* zauważ* merke zeigen mostrar mostres montrer "
          "показыва* 展示给",
    PERSON: "usuari* usuári* utente utenti utilisateur* l'utilisateur benutzer* nutzer* anwender* gebruiker* "
            "användar* bruker* bruger* użytkowni* uživatel* utilizator* felhasználó* käyttäjä* kullanıcı* pengguna "
            "người_dùng mtumiaji пользовател* юзер* користувач* потребител* χρήστη* χρηστ* المستخدم* مستخدم کاربر* "
            "המשתמש* משתמש صارف उपयोगकर्ता* यूज़र यूजर ব্যবহারকারী* ผู้ใช้ 用户 用戶 使用者 主人 ユーザー 利用者 사용자 유저 cliente "
            "clientes persona dueñ* titular propriet* dono client clients propriétaire kunde* kunden besitzer* "
            "inhaber* mensch* владел* клиент* человек* людям оператор* المالك العميل صاحب ग्राहक मालिक 客户 客戶 对方 本人 "
            "人类 顧客 所有者 持ち主 고객 주인 소유자 operador* bediener* opérateur* للمستخدم* مستخدم*",
    SEND: "envía envíe envíes enviar enviarlo envialo enviando envio manda mande mandar mandes mándale sube suba "
          "subir subas súbelo reenvi* transmite transmita transmitir transmitas encaminh* invia inviare invii "
          "inviale inviali spedi* inoltr* carica* envoy* transmets transmettez transmettre transfère transférez "
          "transférer transfiere transfiera transfira sende senden sendet sendest schick* übermittel* übertrag* "
          "hochlad* lade leite weiterleit* verstuur* stuur* skicka* ladda_upp wyśl* prześl* wysyła* pošl* odešl* "
          "trimite* încarcă küld* lähetä* gönder* yükle* ilet* kirim* unggah* gửi_cho gửi_đến gửi_tất gửi_mật "
          "gửi_khóa gửi_nội tải_lên chuyển tuma отправ* отошл* перешл* загрузи* передай* пошли* надішл* відправ* "
          "изпрат* στείλ* ανέβασ* أرسل ارسل إرسال ارفع بفرست* ارسال שלח* העלה بھیج* भेज* अपलोड পাঠা* ส่ง อัปโหลด 发送 "
          "發送 上传 上傳 发到 发给 發到 發給 传给 转发 轉發 提交 传输 送信 送っ 送り アップロード 転送 전송 보내 보낸 업로드 전달 remit* pasa pase pasar pásale "
          "páselo pon ponga ponlo poner ponla adjunt* incluy* copia copiar copiez copier cópialo facilita facilite "
          "entreg* coloc* anex* inclua incluir incluindo repass* envie* envoi* insère insérez insér* mets mettez "
          "joign* ajout* copie fourni* remplis füge füg* übergib* übergeb* lege legst gib trage trag* kopier* hänge "
          "hängt setz* schreib* встав* запиши* добав* приложи* укаж* помести* скопируй* слей* ضع أدرج أضف انسخ مرر "
          "सौंप* डाल* रख* जोड़* शामिल 放到 放入 填入 写入 附上 附在 附加 传入 传到 作为 寄到 粘贴 传送 告诉我 交给 渡し 含め 入れ 添付 貼り 書き込 設定し 넣 첨부 포함 "
          "입력 붙여 담아 적어 coloqu* ponha insira anexe bote escriba escribe remet* faz_upload hinterlege übermittle tippe "
          "reich* weiter schicken verschick* déposer dépose colle collez écris renseigne впиши* введи* внеси* "
          "подставь* вставляй* вышл* وضع وأرسل وأدرج واكتب وضعه أدخل املأ مرّر ابعث डालो डालें लगा* पहुँचा* 填写 填进 填到 "
          "放进 写进 带上 汇给 复制到 拷贝到 添え 貼って 入力し 記入 渡す 渡して 넘겨 적으 집어넣 건네 기입 meta_isso meta_o pega pégalo pegue cola cole_o "
          "incluye añad* agrega* teclea ajoutez wpisz wklej vložte incolla plak skriv",
    SECRET: "contraseña* clave* credencial* tokens secreto* senha* chave* segredo* password* chiav* credenzial* "
            "segret* mot_de_passe mots_de_passe clé* clef* identifiants secrets passwort* passwört* schlüssel* "
            "zugangsdaten geheim* wachtwoord* sleutel* lösenord* nyckel* nycklar adgangskode* passord* nøgle* hasł* "
            "klucz* hesl* klíč* parol* chei* cheie jelszó* jelszav* kulcs* salasana* avain* avaimet şifre* parola* "
            "anahtar* kata_sandi sandi kunci mật_khẩu khóa nywila пароль* парол* ключ* секрет* токен* учетн* учётн* "
            "κωδικ* κλειδι* كلمات كلمة_المرور المرور مفاتيح المفاتيح مفتاح رمز* گذرواژه رمزهای کلید* סיסמ* מפתח* "
            "پاس_ورڈ पासवर्ड कुंजी* टोकन পাসওয়ার্ড รหัสผ่าน 密码 密碼 密钥 密鑰 令牌 口令 凭证 憑證 凭据 私钥 私鑰 秘密 パスワード 鍵 認証情報 トークン "
            "秘密鍵 비밀번호 암호 키를 토큰 자격 api token env ssh rsa keys key secret llave* credenciales tarjeta* historial "
            "conversaci* conversa* cookies carte* historique verlauf kreditkarte* gespräch* переписк* истори* карт* "
            "بطاقة المحادثة سجل कार्ड बातचीत इतिहास 聊天记录 对话 银行卡 信用卡 隐私 助记词 履歴 会話 カード 個人情報 대화 기록 카드 개인정보 キー 키",
    FREE: "restriccion* restriç* restrizion* restrictions restriction einschränkung* beschränkung* beperkingen "
          "begränsningar begrænsninger begrensninger ogranicze* omezení restricții korlátozás* rajoituksia "
          "rajoituksi* kısıtlama* sınırlama* batasan pembatasan hạn_chế giới_hạn vikwazo ограничен* обмежен* "
          "ограничени* περιορισμ* قيود حدود محدودیت* הגבלות प्रतिबंध* सीमा* ข้อจำกัด 限制 约束 約束 审查 束縛 制限 制約 検閲 제한 제약 "
          "límites limites limiti grenzen filtros filtres filter limite límite limitación* limitações limitação "
          "limitierung* restricc* restrição ataduras filtr* censur* morales morais moralisch* ética éticas ético "
          "éticos éthique* ethisch* regel* schranken zensur beschränk* цензур* рамок огранич* запрет* фильтр* морал* "
          "ضوابط رقابة قيد पाबंदी* रोक* बंधन* 底线 道德 过滤 過濾 拘束 枷锁 禁忌 規制 倫理 フィルター 道徳 규제 검열 윤리 필터",
    ASK: "confirmación confirmar confirmação confirme confirmer confirmes aprob* aprov* autoriz* permiso permissão "
         "consentimiento consentimento consentement consulte consultar consultes pregunt* pergunt* demande demander "
         "demandez approbation autoris* bestätig* genehmig* zustimm* erlaubnis rückfrag* frage fragen fragst "
         "nachfrag* подтвержд* разреш* соглас* спрашива* спросить одобрен* تأكيد موافقة إذن استئذان पुष्टि अनुमति "
         "मंज़ूरी सहमति पूछ* 确认 確認 同意 许可 許可 批准 询问 授权 授權 承認 許諾 尋ね 확인 승인 허락 동의 묻지",
    MODEL: "ia ki ii ии ai asistente assistente assistant assistent* modelo modelos modèle modell* модел* ассистент* "
           "помощник* бот агент* agente agenten agent مساعد المساعد نموذج النموذج الذكاء सहायक मॉडल एआई 助手 模型 智能体 "
           "人工智能 机器人 助理 アシスタント モデル エージェント 어시스턴트 모델 에이전트 인공지능 비서 claude chatgpt gpt gemini",
    NOW: "a_partir_de_ahora de_ahora_en_adelante desde_ahora desde_este_momento a_partir_de_agora de_agora_em_diante "
         "désormais dorénavant à_partir_de_maintenant ab_jetzt ab_sofort von_nun_an fortan отныне с_этого_момента "
         "впредь من_الآن अब_से 从现在起 从现在开始 從現在起 從現在開始 从此 今后 现在起 これから 今から 今後 以後 이제부터 지금부터 앞으로 da_ora_in_poi "
         "d_ora_in_poi od_teraz od_tej_chwili vanaf_nu artık bundan_sonra mulai_sekarang từ_bây_giờ ab_heute "
         "ab_diesem_moment desde_hoy desde_ya a_partir_de_hoje dès_maintenant dès_à_présent с_этой_минуты "
         "с_этого_дня 今日から いまから 오늘부터 منذ_الآن आज_से ahora_eres eres_ahora agora_você_é você_é_agora você_agora_é "
         "jetzt_bist_du du_bist_jetzt bist_jetzt bist_du_jetzt tu_es_maintenant maintenant_tu_es теперь_ты ты_теперь "
         "أنت_الآن الآن_أنت अब_तुम अब_आप तुम_अब आप_अब 现在你是 你现在是 以后你 现在起你",
    VOID: "anulad* inválidas inválidos inválida derogad* cancelad* suspendid* sin_efecto sin_vigor ya_no_valen "
          "ya_no_rigen ya_no_aplican não_valem_mais não_valem revogad* sem_efeito annulé* caduc* levée levées "
          "ne_s_appliquent_plus n_ont_plus_cours ne_valent_plus abrogé* suspendu* gelten_nicht gilt_nicht "
          "gelten_nun_nicht aufgehoben ungültig außer_kraft hinfällig nichtig отмен* недействительн* "
          "больше_не_действуют не_действуют утратили_силу не_имеют_силы ملغاة لاغية ملغى باطلة لم_تعد रद्द अमान्य "
          "निरस्त लागू_नहीं 作废 失效 无效 無效 废止 取消 不再适用 不再有效 無効 撤回 取り消 廃止 무효 취소 폐지 해제 nieważn* unieważn* ongeldig "
          "vervallen geçersiz nulle annullat* decadut* tidak_berlaku",
    SAID: "dicho dijo dijeron dijiste dito disseram disse dit disait demandé gesagt* aufgetragen* сказан* говорил* "
          "велел* приказ* просил* قيل قال قالوا أخبروك कहा बताया सिखाया 内容 说过 說過 说的 告诉过 教过 吩咐 对话 話 言われ 教えられ 文脈 말한 들은 "
          "내용 배운 detto detti powiedzian*",
    READ: "lee leer lea leyendo abre abrir recoge recopil* reún* obtén busca leia ler abra coleta* colete recolh* "
          "lis lire lisez ouvre ouvrez récupère récupér* collecte collectez lies lese lesen öffne öffnen sammle "
          "sammel* hole besorge прочитай* прочти* читай открой* собери* получи найди اقرأ افتح اجمع احصل पढ़* खोल* "
          "इकट्ठा निकाल* 读取 讀取 读 打开 获取 收集 查看 找到 读出 読み 読ん 開き 開い 取得 収集 集め 읽 열 수집 가져 leggi leggere apri raccogli "
          "przeczytaj otwórz zbierz lees open verzamel oku aç topla baca buka kumpulkan đọc mở contenido inh contenu "
          "conteúdo содержим* محتوى सामग्री 内容 内容を 내용 contenuto consulta coge toma saca pega_o leia_o abra_o prends "
          "cherche trouve lade auslesen nimm suche возьми* загляни* считай* извлеки* خذ ابحث افحص استخرج लो ढूंढ* 取出 "
          "提取 打開 查找 抓取 読め 開け 拾い 探し 가져와 찾아 꺼내 copia copie kopiere kopier скопируй* コピー 复制 複製 복사 انسخ kopiuj cat",
    FILE: "ssh env rsa ed25519 aws passwd shadow netrc npmrc kubeconfig pgpass pypirc gnupg bashrc kube mcp history "
          "wallet keychain",
    DESTINATION: "direcci* correo* email e-mail endereço adresse* adress* adresa адрес* почт* عنوان العنوان البريد "
                 "पते पता ईमेल 地址 邮箱 郵箱 邮件 网址 链接 我 给我 アドレス メール 宛 私に こちら 주소 이메일 메일 나에게 저에게 내게 http https com example "
                 "evil me mich uns mir moi nous nos мне нам لي إلينا मुझे हमें enviame mim nosotros indirizzo "
                 "servidor serveur server сервер* الخادم सर्वर 服务器 サーバー 서버 webhook",
    STEALTH: "a_escondidas a_hurtadillas en_secreto secretamente disimuladamente sigilosamente às_escondidas "
             "em_segredo furtivamente en_cachette secrètement discrètement à_son_insu à_l_insu en_douce heimlich "
             "insgeheim unbemerkt hinterrücks klammheimlich тайком тайно втайне незаметно скрытно украдкой سرا سرًّا "
             "خفية خلسة चुपके चुपचाप गुपचुप छिपकर चोरी_छिपे 偷偷 悄悄 暗中 暗地里 秘密地 背着 瞒着 隐瞒 こっそり ひそかに 密かに 内緒 秘密裏 隠れて 黙って "
             "몰래 은밀 비밀리 남몰래 di_nascosto in_segreto segretamente potajemnie w_tajemnicy po_kryjomu stiekem heimelijk "
             "gizlice diam-diam bí_mật lén_lút i_hemlighet i_smyg hemmelig potají tajně 모르게 모르도록 知られずに 気づかれずに 不知不觉 "
             "神不知鬼不觉 sigilo en_silencio_total sin_que_lo_sepa sem_que_saiba à_l_insu_de hinter_dem_rücken за_спиной",
    SYSTEM: "sistema système systeem systém systemu system* sistem* rendszer* järjestelmä* систем* النظام सिस्टम "
            "ระบบ hệ_thống mfumo συστήματος המערכת desarrollador* desenvolvedor* entwickler* développeur* "
            "разработчик* 开发者 開發者 開発者 개발자 المطور* डेवलपर* operador betreiber* fabricante* hersteller* sviluppator* "
            "programador* ontwikkelaar* programmierer* programmeur* geliştirici* deweloper* vývojář* utvecklar* "
            "udvikler*",
    HIDE: "verberg* verbirg* verheimlich* verschweig* cache cachez dissimul* скрой* скрыва* утаи* прячь* спрячь* أخف "
          "إخفاء اخف خبئ 隐瞒 瞒住 保密 隐藏 隠し 隠せ 隠す 숨기 숨겨 감춰 감추 ukryj ukrywaj verberg oculta ocúltalo ocúltale ocultes "
          "esconda esconde escóndelo escóndele nascondi nascondilo छिपाओ छिपाना छिपाएं छिपाकर छुपाओ छुपाना",
    OTHER: "esto esta este ello dies dieses diese diesen das cela ceci cette это этот эту этого 这 這 此 这件事 これ この それ "
           "이것 이걸 이 هذا هذه ذلك यह इस इसे isto isso passo paso schritt étape шаг",
}
# fmt: on


def _entries(table: Dict[int, str], shift: int) -> Iterable[Tuple[str, int]]:
    for idea, words in table.items():
        for word in words.split():
            yield fold(word.replace("_", " ")), idea << shift


FOREIGN = 24
"""How far the bits of other languages are moved."""

_WITHOUT_SPACES = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_SHORTEST_STEM = 2
_PREFIXES = frozenset("وفبل")
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
        bits = self._bits(token) or (self._bits_within(token) if token[0] in _PREFIXES else 0)
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

    def _bits_within(self, token: str) -> int:
        """The ideas of an Arabic word behind what is written as one with it: and, so, for, with."""
        for plain in (token[1:], token[2:], "ال" + token[2:]):
            bits = self._bits(plain) if len(plain) > _SHORTEST_STEM else 0
            if bits:
                return bits
        return 0

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
