/**
 * The most common passwords, in lower case. The policy also detects them with digits, symbols, capitals, letter
 * substitutions and repetitions. They are a constant, so that a bundled process needs no data file.
 */
export const commonPasswords = `
123456 password 123456789 12345678 12345 111111 1234567 sunshine qwerty iloveyou princess admin welcome
666666 abc123 football 123123 monkey 654321 charlie aa123456 donald password1 qwerty123 letmein dragon
baseball master michael shadow superman batman trustno1 hello freedom whatever qazwsx login starwars solo
passw0rd access flower hottie loveme zaq1zaq1 mustang cheese computer jordan jennifer hunter buster soccer
harley andrew tigger robert thomas hockey ranger daniel klaster george asshole fuck fucker pussy pepper
killer zxcvbn zxcvbnm asdfgh asdfghjkl qwertyuiop ginger matthew jessica joshua pass test testing tester
guest root toor administrator changeme change default system oracle cisco router manager operator server
secret secure security private public internet network database backup service support helpdesk user
username account office company business temp temporary temppass newpassword newpass mypassword mypass
yourpassword password12 password123 passwort kennwort passwd passcode motdepasse contrasena contraseña
senha parola haslo heslo lozinka wachtwoord salasana parool jelszo sifre losenord adgangskode abcd1234
abcdef abcdefg abcdefgh abc12345 a1b2c3 a1b2c3d4 a123456 a12345678 q1w2e3 q1w2e3r4 q1w2e3r4t5 1q2w3e
1q2w3e4r 1q2w3e4r5t 1qaz2wsx 1qazxsw2 zaq12wsx qazwsxedc qweasd qweasdzxc qwe123 qwer1234 asdf asdf1234
asd123 zxc123 azerty azertyuiop qwertz qwertzuiop poiuyt lkjhgf mnbvcxz 0987654321 987654321 87654321
7654321 11111111 00000000 121212 112233 123321 123654 147258 147258369 159753 159357 131313 696969 777777
888888 999999 555555 222222 333333 444444 101010 12341234 11223344 1234qwer 123qwe 123abc 123asd love
lover lovely loveyou iloveu ilovegod jesus jesuschrist god godisgood heaven angel angels blessed faith
hope grace christ christian bible church amen allah muhammad ismail inshallah bismillah alex alexander
alexandra alexis amanda amber andrea angela angelina anthony antonio ashley austin barbara benjamin
brandon brian brittany bradley brooklyn caroline catherine charles charlotte chelsea chris christine
christopher crystal danielle david deborah dennis diana donna dorothy douglas edward elizabeth emily emma
eric erica evelyn florence francis frank fernando gabriel gabriela gary gloria gregory hannah heather
helen henry howard isabella jack jackson jacob james jamie janet jason jasmine jeffrey jeremy jerry jesse
joan joanna john johnny jonathan jose joseph juan juliet julian justin karen katherine kathleen kelly
kenneth kevin kimberly kristen kyle larry laura lauren leslie linda lisa louis lucas lucy luis maggie
marcus margaret maria marie marina mark martha martin martina mary maxwell megan melanie melissa melvin
mercedes michelle miguel mike molly monica morgan nancy natalie natasha nathan nicholas nicole nikita
norman olivia oliver oscar pamela patricia patrick paul peter philip phillip rachel ralph randy raymond
rebecca richard ricardo roberto rodrigo roger ronald rosemary roxanne russell ruth ryan sabrina sally
samantha samuel sandra sarah scott sean sebastian sergio sharon sheila simon sophia sophie stella
stephanie stephen steven stuart susan sylvia tamara taylor teresa theresa tiffany timothy tony tracy
travis tyler valentina valerie vanessa veronica victor victoria vincent virginia vivian walter wendy
william yolanda yvonne zachary adriana alejandra alejandro alfredo andres carlos claudia cristina daniela
diego eduardo enrique estrella fabian felipe francisco guillermo gustavo hector javier jorge leonardo
lorena manuel marcela mariana mauricio monika pablo paola pedro rafael ramon raul santiago silvia sofia
valeria ximena hans heinrich jürgen karin katharina klaus manfred markus matthias petra sabine schatz
schalke stefan steffen susanne torsten ulrike ursula werner wolfgang bernd dieter florian franziska sommer
winter fruehling herbst hallo hallo123 geheim liebe ichliebedich giovanni giuseppe francesca francesco
alessandro alessandra ciao amore amoremio juventus inter milan napoli roma forzaroma soleil doudou
chouchou loulou bonjour marseille nicolas camille chocolat coucou jetaime amour bordeaux natalia agnieszka
karolina mateusz polska kasia bartek dawid kochanie misiek marta myszka anderlecht feyenoord ajax
amsterdam welkom welkom01 rotterdam svetlana nastya sasha dima vladimir tatyana lubov privet parol zvezda
arsenal liverpool manchester manutd united tottenham everton celtic rangers barcelona realmadrid madrid
benfica porto sporting dortmund bayern bayernmunich corinthians flamengo palmeiras vasco saopaulo boca
riverplate cowboys steelers packers patriots raiders eagles broncos dolphins lakers yankees redsox dodgers
giants cubs braves tigers bulldogs gators longhorns buckeyes wolverines spartans crimson ronaldo messi
neymar beckham zidane maradona pele kobe lebron jordan23 michaeljordan tiger tigerwoods senna schumacher
rossi pokemon pikachu charizard naruto sasuke sakura goku vegeta dragonball onepiece bleach minecraft
fortnite roblox counterstrike callofduty halo playstation nintendo mario luigi zelda sonic warcraft
starcraft diablo skyrim matrix gandalf frodo hobbit tolkien lordoftherings harrypotter hogwarts gryffindor
slytherin dumbledore hermione voldemort skywalker anakin vader yoda chewbacca jedi startrek enterprise
spock kirk picard spiderman wolverine ironman avengers hulk captain marvel deadpool joker robin catwoman
wonderwoman superstar simpsons homer bart scooby garfield snoopy mickey minnie donaldduck tinkerbell
tinker bambi simba nemo shrek barbie hellokitty kitty sailor sailormoon metallica slipknot nirvana
greenday blink182 linkinpark eminem tupac 2pac biggie snoopdogg beyonce rihanna shakira madonna
michaeljackson elvis beatles lennon queen pinkfloyd ledzeppelin ironmaiden acdc gunsnroses rammstein
blackmetal deathmetal rockstar rocknroll guitar drummer piano violin music musica musique dog doggy doggie
puppy kitten cat cats lion lions panther leopard cheetah bear wolf wolves fox rabbit bunny horse horses
pony unicorn dolphin shark whale eagle falcon hawk phoenix raven parrot turtle snake viper cobra python
spider scorpion butterfly ladybug monkey1 gorilla elephant panda koala kangaroo chicken rooster turkey
duck ducks penguin froggy lizard dinosaur red blue green yellow orange purple violet pink black white
silver golden gold diamond diamonds ruby emerald sapphire pearl jade copper platinum titanium bronze
spring summer autumn fall january february march april may june july august september october november
december monday tuesday wednesday thursday friday saturday sunday christmas halloween easter birthday
newyear valentine apple apples banana cherry peaches peach strawberry blueberry raspberry lemon lemonade
melon watermelon mango coconut pineapple grape chocolate vanilla caramel cookie cookies cupcake brownie
candy sugar honey sweet sweetie sweetheart sweety sweetpea butter bacon pizza burger coffee cappuccino
whiskey vodka tequila corona heineken budweiser guinness champagne cocacola pepsi sprite nutella america
american usa canada mexico brasil brazil argentina colombia venezuela chile peru england scotland ireland
london paris france germany deutschland berlin hamburg munich italia italy spain espana portugal lisboa
russia moscow poland warsaw sweden norway denmark finland holland netherlands belgium austria vienna
switzerland greece athens istanbul turkiye galatasaray fenerbahce besiktas israel egypt nigeria kenya
africa southafrica india pakistan china beijing japan tokyo korea seoul vietnam thailand bangkok indonesia
jakarta malaysia singapore philippines manila australia sydney newzealand hawaii alaska california texas
florida newyork newyorkcity boston chicago dallas denver detroit houston lasvegas losangeles miami
philadelphia portland seattle sandiego sanfrancisco washington ferrari porsche mercedesbenz bmw audi
toyota honda nissan mazda subaru mitsubishi suzuki yamaha kawasaki ducati harleydavidson ford chevy
chevrolet camaro corvette dodge jaguar bentley lamborghini maserati bugatti volvo volkswagen skoda renault
peugeot citroen fiat alfaromeo hummer cadillac truck trucks racing racer nascar formula1 formulaone google
facebook twitter youtube instagram linkedin myspace yahoo hotmail gmail microsoft windows windows10 linux
ubuntu debian macintosh iphone ipad android samsung galaxy nokia motorola sony dell lenovo toshiba hewlett
packard intel nvidia amazon netflix spotify paypal ebay bitcoin ethereum blockchain crypto adobe adobe123
photoshop dropbox github docker kubernetes jenkins postgres mysql mongodb redis elastic grafana prometheus
vagrant ansible terraform tomcat weblogic wordpress joomla drupal magento bailey bandit barney beauty
bella bigboy bigdaddy bigdog billy biteme bitch bitches blabla blink blond blonde bond007 boobies boobs
booboo boogie boomer bubba bubbles buddy bugs bullshit butthead camel cameron casper champion chance
charmed chester chipper chronic chuck claire clancy college compaq cooper cougar cowboy cricket dakota
danger darkness darling dave dead death debbie denise devil dick dirty doctor dream dreamer dreams driver
eagle1 energy extreme family fantasy fatboy fender fire fireball firebird firefighter fish fishing flash
fluffy flyers forever forever21 fortune freak freddy friend friends friendship frog fuckme fuckoff fuckyou
fuckyou1 funny fun future gabby gangsta gangster gateway gemini general genius gibson girl girls goddess
golf golfer good goodluck goodbye goofy great hacker hammer happy happiness hardcore harvey heart hearts
hello1 hello123 helpme hentai hooters hotdog hotrod hotstuff hunting iceman idontknow ihateyou iloveme
imagine infinity jackass jackie jake jasper jeter jimmy jordan1 juice junior justice kermit killer1 king
kingdom kings kiss kisses knight ladies lady legend legends lifehack lightning little liverpool1 lollipop
london1 lonely lost lotus lucky lucky7 lucky13 machine madison magic magnum marine marines marlboro marley
master1 maverick merlin midnight mike1234 miller million miracle mission mister money monster moon
moonlight mother mother1 mountain muffin murphy myself naked nathan1 natural neverland nothing number1
ocean online orange1 outlaw panties paradise passion peace peanut peanuts people pepper1 perfect pickle
pirate playboy player please poop pookie popcorn porn porno power powerful precious pretty prince
princess1 princesa problem professor puppies qwert rainbow rainbows ranger1 rasta rebel redneck redrum
reggie remember revolution rider river roadrunner rocket rocky rose roses runner runaway rush2112 sailing
salvador samson samsung1 satan scarface school schoolsucks scooter scorpio secret1 semperfi sexy sexybitch
sexyboy sexygirl sexylady sexyme shadow1 shannon shelby shithead shorty sierra silly silver1 single sister
sisters skate skater skippy slayer smile smiles smiley smokey smoke snickers snowball snowflake snowman
soccer1 soldier sparky spartan speed speedy spirit spongebob squirt star stars starlight stalker steelers1
storm stranger strong student stupid success sucker sugar1 summer1 sunflower sunrise sunset sunny
superman1 superwoman surfer surfing survivor sweetness swimming swordfish tacobell teacher teamo tekiero
tequiero terminator test123 test1234 testtest thebest theman thunder thunderbolt tiger1 together tomorrow
tootsie topgun toyota1 treasure trinity triumph trouble trumpet truelove tweety twilight ultimate unknown
vacation vampire vampires viking vikings volleyball voyager warrior warriors water weed welcome1
welcome123 wedding whatever1 whiskey1 wicked wildcat wildcats willow windsurf winner winners winston
wizard women wonder wonderful woody working world xavier xxxxxx yankees1 yellow1 yesterday yourmom zebra
zeppelin zombie zombies letmein1 letmeinnow openup opensesame sesame openplease iamgod iamtheking
imthebest thisismypassword thisisapassword mypassword1 nopassword nopass passwordpassword passphrase
masterkey masterpassword superuser superadmin sysadmin webadmin localadmin adminadmin admin123 admin1234
admin12345 administrator1 rootroot root123 rootpassword userpassword user123 guestguest guest123 testuser
testpassword testaccount demodemo demopassword demouser sample example examplepassword password1234
password12345 password123456 passw0rd123 p4ssw0rd p455w0rd pa55word pa55w0rd qwerty1 qwerty12 qwerty1234
qwerty12345 qwertyqwerty asdfasdf zxcvzxcv abcabc iloveyou1 iloveyou2 iloveyou123 iloveyousomuch
iloveyouforever ilovemyself ilovemyfamily ilovemymom ilovemydad ilovemusic ilovechocolate ilovefootball
ilovejesus loveandpeace loveforever loveisintheair letmeinplease correcthorsebatterystaple trustnoone
trustme trustgod ingodwetrust jesuslovesme jesusislord godislove godisgreat praisethelord hallelujah
hakunamatata supercalifragilisticexpialidocious changeit changeme123 changemenow changethis changepassword
pleasechangeme newpassword1 newuser welcomehome welcometo welcomeback firsttime firstpassword onetwothree
onetwothreefour unodostres abcdefg123 abcdefgh1 alphabet alphabeta alphaomega keyboard keyboardcat
qwertykeyboard computer1 internet1 samsunggalaxy playstation2 playstation3 playstation4 gamecube xbox
xbox360 gamer gamergirl gaming gamemaster dungeonmaster dragonslayer dragonfire dragonfly blackdragon
bluedragon reddragon whitetiger blackcat blackbird bluebird bluesky bluemoon greenday1 greenapple redbull
redrose redhead whiterabbit goldfish goldengate silverfox silverado darkangel darkknight darklord darkside
fallenangel littleangel angelface babyboy babyblue babydoll babygirl babygirl1 babyface babybear baby
sweetbaby cutie cutiepie cuteness princesita corazon mivida miamor teamomucho mariposa bonita chiquita
hermosa preciosa estrellita
`;
