"""How often languages use their letters, from which `encodings` guesses what wrote a file.

The figures are from Wikipedia's texts (langdetect's profiles), those of the wide characters from texts of the web.
"""

# ruff: noqa: RUF001 - letters of many scripts look alike

#: Letters by language. A number, which counts for the letters after it, is the rarity of each: -2 * ln(its share).
LETTERS = {
    "en": "4e5aitnosr6lh7dcmu8fpgbyw9v10k12j13xz14q17é",
    "de": "4e5nirs6tadlh7uocmg8bkf9pwzv11üäy12öj13ß14x16éq18áí",
    "fr": "4e5anistr6loud7cmép8g9hbfv10q11yàjxè12k13wçz15êô16îâ17ïû18œù",
    "es": "4ea5oni6srldtc7ump9gbfyv10hó11qíjzáé12kxñ13úw18è",
    "pt": "4ae5oid6srntmcu7lp8g9bhfvé10ã11çíqákzj12óxy13wê14úâ15õàô18üè",
    "it": "4aie5onlt6rsdc7ump8g9vbfhz10è12kyq13àw14jx15ùò16é17ì18ó",
    "nl": "4e5nait6rsodl7mgh8uvcpkb9wjf10z11y14ëéx16q17áöüèóô18íïä",
    "da": "4e5rnti6sadlo7gmkf8buvph9y10øcåæj13w14z15x16é17üöä18q",
    "sv": "5earnts6ilod7mkgv8ufhpäbc9öå10yj12w13x14z16é17q18ü",
    "fi": "4ai5nets6oluk7rmä8jvphy9d10g11cbö12f13w15xz17šé18q",
    "et": "4a5eis6tnloukr7md8vghpj9bäõ10ü11fc13öy14wz15š16xž17qéā18áó",
    "lv": "4a5is6ertunok7lāmdpv8jzībg9ēc10š11fļūhņ12ž13ķģ14č15y16wx17q",
    "lt": "4ia5so6erntuk7lmpdjv8gėyų9bš10žc11ūčįzfą12h13ę16wx18q",
    "pl": "5aioe6nwrscz7tkdypmlu8jg9hłbó10ąśęż11f12ń13vć15xź16é18üáö",
    "cs": "5eoan6tsirvkl7mudpích8jázby9éěýřč10žgš11fů13wú14x15ňó16ť17ď18q",
    "sk": "5oae6nirtsvk7lmdpucj8házby9ýíč10éúgšžf11ľ12ťó13wô14xňä15ď16ĺ",
    "sl": "4a5eion6rslkjtv7dpm8uzbg9hcčš10ž11f13y14w15áé16íóx17ćú18qèüö",
    "hr": "4a5ieon6rjskut7ldmvp8gzcb9hč10š11žfć12yw13đ15xq16áé17í18ó",
    "hu": "5aet6lsnrikoz7ágém8bydv9puhcjfóö10ő11íüú12ű14wx18q",
    "ro": "4e5iarnt6ulocs7dmp8ă9fbgvî10ţşzh11â12jkx13yw17éqáș18üț",
    "sq": "5eitëarn6sho7mlkdujp8gv9bfq10zc11y13ç14x15w",
    "tr": "4a5einrl6ıdkt7smuoy8bü9gşvzhcp10fçğö13jw16âx17îé18q",
    "ca": "4ae5islnr6tdocu7mp8gb9fv10éhqó11àèyíx12jòkz14wçú16ïü17á",
    "cy": "5adyneri6olw7ghftscum8b10p13â14kô15vj16ŵ17ïŷz18xêîáq",
    "ru": "5оиаен6рствл7кмдп8яугйыз9бьхч10цжфю11шщ12эё16ъ",
    "uk": "5наоі6етрисв7клдумп8ьзяг9цбйчхї10юфжє11ш12щ16ґ",
    "bg": "4а5иеонт6рсвк7лдпм8гзяъу9бч10цйжфщ11хш12ю15ь",
    "mk": "4а5оиент6рскв7длп8мјугз9бч10цш11фжх12њ13ѓ14ќ15џ",
    "el": "5αοτι6νερκσςη7πμυλί8όγάήδέ9ωχύθ10φβώ11ζ12ξ15ψϊ",
    "he": "4יו5ה6רלבתמאש7נדקעם8פסחכטג9ןצז12ך13ףץ15ּ16ְ",
    "ar": "4ال5يم6ونرتب7ةدعسف8هكقحأ9جشط10صإىزخثغ11ضذئ12ءظ14آ15ؤ",
    "fa": "4ا5يرنه6دومتسش7بکل8زف9عجقگ10آخپطصح11چ12غ13ذژٔضئ14ظث",
    "th": "5า6นรอเก7ง่มัียวล้ทิ8สดตปะหบคแ9พจ์ืชข็ใุโู10ศไำ11ึซษถภธณ12ผญฟ13ฐ14ฤฮฉๆ15ฝฏ16ฎฒ๊ฑ",
    "is": "5arnie6stulðgm7kfv8ohádíþ9jbóyæ10pöéú12ý15x17c18zw",
    "be": "4а5ні6роселкут7ыдўя8впмзцьгб9йчх10жёэю11ш12ф",
    "sr": "4а5оие6нрстувј7кдлмп8згб9чш10цљжћхњ12ђф14џ",
    "vi": "5nht6icga7mođu8lrbsvdàá9kepưyạô10ộêếóảâấì11qxầậềệíốồớăịọơờủụứ12ãắợúùừựòằéý13è",
}

#: The most frequent ideographs or syllables of the languages that write without an alphabet, from the most frequent on.
FREQUENT = {
    "zh": (
        "的一是人了不在有大中国和为这上他个地年来我会以到时要出生学说道民家子也成行下们于后就发自之对得主长可过天作分方用多你着部"
        "能市等业全里工公经本都而高政法面门动日进区事代那去心小同北定开产前其军还然起种所如现理机体表力好外与文当两实重新三么只山"
        "水关明从化平建又制南内西没此将员名手最东头者月间无安看见各城十相但已些正口通想度加第她合院物性战由位常点海意场武使次二向"
        "治因立数样身情入原问把路被并利石老教万知级量任江及应省资委务元美特期世湖回系比气汉总展电科金先声提品设或义王社很统处四首"
        "共马形己儿司太目基领队直计别女权话少流命至报米给打变果书清活几州华解议更称程今决张导术府才保交放管结师便走达族反再题色五"
    ),
    "tw": (
        "的我是一不了人國有在家年生個這會到說來美就以大要為好學你小自之上作時英看中們可動文對地天也出麼還與著下日多得他想物後沒所"
        "於過書都本那事者子然心很女經開去而和成名裡斯前因間台無愛己公世現如應感面十新能樣最起法電道影理種手實行回方放知片再該用但"
        "及點情意給特她友其月發同什分話力記第讓當寫部些真爾又體見全民性德果灣次把反外教覺已主從明關二像問告界社進三樂水流或工頭買"
        "等別期圖嗎加只論代利被兩類定吧做老字今太西格選才高並常男單身百始相機題路長吃幾港東香總威非場克聯政議化此命怎完合權變未級"
        "結每花兒義連原轉打視卻史喜歡故報四門廣紀許拉網走接內畫使展受候度位更找阿夫華入活口溫先共品劇皮五基式怪眼程提續由各處士言"
    ),
    "ja": (
        "人日年金出今本分一思入作方見大事行時中生上合書間品保気私使自月開前的円記料言定新子手来公者場成対後回話会険実下発感通用営"
        "最目動現神全理明文意家経同期不問内味正無名外数社代知世売当地税山取度仕多物力体学持退国法報職空何要業以近増番部額変様信先"
        "介高紹表食界込機活利万三道考長結買解第所約性士小決読十情少集二戦関違能心受員題必真夜風語立切収化面算水白続楽式引画田曲葉"
        "送女連主天登屋車重走初状笑振君次説勝他想型彼応果払答博計諸好識良過治店和身東昭在郎有元呼演足予組商流資特策強付注指安死氏"
    ),
    "ko": (
        "이다는하에가고지로을의서기그은어아니한도나를리사있만라들게시스자인해것보일으면요수대정주마제전되적상거여오었데과내간무미"
        "용트분구장드부비까글야습했생우할소음진러신없저말모안문않와히때세려바동포입개치중더유터위화색같래경월던버런공각성단원네블"
        "번많실영건계관임람검프국조작회물르연두파겠금크선체식디타후업당된움본방명행운재점등루른메든피년좋발살호렇느너합았결워처심"
        "군알능며차매노레목남론돋현잘못예록코받태"
    ),
}
