"""Off-topic prompts in other tongues than most notes are in."""

from __future__ import annotations

#: One to six of each tongue: of the world, and of everyday coding.
TONGUES = """\
Wie bekomme ich am besten Rotwein aus dem Teppich?
Schreib mir bitte ein Gedicht über den Herbst am Meer.
Kannst du die Funktion so umbauen, dass sie asynchron läuft?
Welche Pflanzen wachsen gut auf einem schattigen Balkon?
Erkläre mir den Unterschied zwischen einer Klasse und einer Schnittstelle.
Bitte ergänze Tests für den Parser und räume die Importe auf.
Warum startet der Container nicht, wenn ich das Volume einbinde?
Was kostet eine Bahnfahrt von Hamburg nach Wien im Sommer?
Comment faire une bonne pâte à crêpes sans lactose ?
Corrige les tests qui échouent dans le module de connexion.
Explique la différence entre une pile et une file d'attente.
Quelle est la meilleure saison pour visiter la Bretagne ?
¿Cómo puedo aprender a tocar la guitarra en tres meses?
Escribe una función que ordene una lista de fechas, por favor.
¿Cuál es la diferencia entre ser y estar en español?
Come si prepara un risotto ai funghi per quattro persone?
Aggiungi la gestione degli errori a questa funzione.
Qual é a melhor forma de limpar uma panela queimada?
Refatora este componente para usar hooks, por favor.
Jak napisać list motywacyjny do pracy w bibliotece?
Hoe maak ik een goede erwtensoep voor zes personen?
Skriv en kort vits om en programmerare och en katt.
Evde yoğurt nasıl yapılır, adım adım anlatır mısın?
Напиши короткое стихотворение о первом снеге в Москве
Как отсортировать словарь по значению в Питоне?
Почему сборка проекта занимает так много времени?
秋についての俳句を一つ書いてください
東京から京都まで新幹線でどのくらい時間がかかりますか
この関数を非同期に書き直してテストを追加してください
如何用番茄和鸡蛋做一道简单的家常菜
请把这个函数改成异步的，并补充单元测试
长城是什么时候修建的，一共有多长
김치찌개를 맛있게 끓이는 방법을 알려 주세요
이 함수의 오류를 고치고 테스트를 작성해 주세요
كيف يمكنني تعلم اللغة الإنجليزية بسرعة في المنزل؟
איך מכינים חומוס ביתי עם טחינה ולימון?""".splitlines()


def tongues() -> list[str]:
    return TONGUES
